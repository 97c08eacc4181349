#pragma once

#include <chrono>
#include <memory>

#include <speedo/base/platform.hpp>

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

// In the platform's time.
class RealPause : public Pause {
 public:
  explicit RealPause(Platform& platform = real_platform());
  bool wait(std::chrono::milliseconds time) override;
  void end() override;

 private:
  const Clock& clock_;
  const std::unique_ptr<Monitor> monitor_;
  bool ended_ = false;  // guarded by monitor_
};

}  // namespace speedo
