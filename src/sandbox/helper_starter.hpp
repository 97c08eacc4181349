#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <sys/types.h>

#include <speedo/base/result.hpp>

namespace speedo {

struct HelperLaunch {
  std::filesystem::path program;
  std::uint64_t memory_bytes = 0, window_bytes = 0;
  int socket = -1, window = -1;  // the caller's; what the helper gets of them is its own
};

// A thread that starts helper processes. The kernel ends them when the thread that started them
// ends (PR_SET_PDEATHSIG), so it must be one that lives as long as they may.
// Thread safety: start() may be called from any thread.
class HelperStarter {
 public:
  HelperStarter() = default;
  HelperStarter(const HelperStarter&) = delete;
  HelperStarter& operator=(const HelperStarter&) = delete;
  ~HelperStarter();

  // Errors: kNotFound, kUnavailable.
  Result<pid_t> start(const HelperLaunch& launch);

 private:
  void run();

  std::mutex turn_;  // one start after the other
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  const HelperLaunch* asked_ = nullptr;
  std::optional<Result<pid_t>> started_;
  bool stopping_ = false;
  std::thread thread_;  // guarded by turn_
};

}  // namespace speedo
