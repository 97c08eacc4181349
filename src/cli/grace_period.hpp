#pragma once

#include <chrono>
#include <string>
#include <thread>

#include <speedo/base/pause.hpp>

namespace speedo {

// The time that a program takes to end after SIGINT, SIGTERM or SIGHUP, at most: what has not ended
// then is left, and the process ends with 75, saying so. A snapshot under way leaves the one
// before.
// Requires: install_signal_handlers() was called. One object a process, as long as its work.
class GracePeriod {
 public:
  GracePeriod(std::chrono::seconds period, std::string program);
  ~GracePeriod();
  GracePeriod(const GracePeriod&) = delete;
  GracePeriod& operator=(const GracePeriod&) = delete;

 private:
  void watch();

  const std::chrono::seconds period_;
  const std::string program_;
  RealPause pause_;  // until the program has ended
  std::thread thread_;
};

}  // namespace speedo
