#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace speedo::test {

// Passes TCP connections of the loopback on to another of its ports, and keeps every byte that went
// either way. Thread safety: any thread.
class RecordingProxy {
 public:
  explicit RecordingProxy(std::uint16_t to);
  ~RecordingProxy();
  RecordingProxy(const RecordingProxy&) = delete;
  RecordingProxy& operator=(const RecordingProxy&) = delete;

  std::uint16_t port() const { return port_; }
  // So far: the bytes of each connection and direction, one after another.
  std::string recorded() const;

 private:
  // A connection's one direction.
  struct Flow {
    int from = -1, to = -1;
    bool open = true;
    std::string bytes = {};
  };

  void run();
  void accept_one();
  bool pass_on(Flow& flow);  // false: it has ended

  const std::uint16_t to_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::vector<Flow> flows_;  // what recorded() reads is guarded by mutex_
  std::thread thread_;       // last: it uses all of the above
};

}  // namespace speedo::test
