#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace speedo {

// How a thread lets time pass; another one can end that, for good. Thread safety: wait() by one
// thread, end() by any.
class Pause {
 public:
  virtual ~Pause() = default;
  // Returns true after `time`; false, at once, when end() is or was called.
  virtual bool wait(std::chrono::milliseconds time) = 0;
  virtual void end() = 0;
};

// In the machine's time.
class RealPause : public Pause {
 public:
  bool wait(std::chrono::milliseconds time) override;
  void end() override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;  // guarded by mutex_
};

}  // namespace speedo
