#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <speedo/base/platform.hpp>

namespace speedo {

// What one thread waits for and another one gives it, once. Thread safety: set() from any thread,
// the rest by the thread that waits, which destroys it only after it was set.
template <class T>
class Answer {
 public:
  explicit Answer(Platform& platform)
      : clock_(platform.clock()), monitor_(platform.make_monitor()) {}

  void set(T value) {
    const std::lock_guard lock(*monitor_);
    value_.emplace(std::move(value));
    monitor_->notify_all();
  }
  T wait() {
    const std::lock_guard lock(*monitor_);
    while (!value_) monitor_->wait();
    return std::move(*value_);
  }
  // Whether it was set within this time.
  bool wait_for(Instant time) {
    const std::lock_guard lock(*monitor_);
    return monitor_->wait_for(clock_, time, [this] { return value_.has_value(); });
  }

 private:
  const Clock& clock_;
  const std::unique_ptr<Monitor> monitor_;
  std::optional<T> value_;
};

}  // namespace speedo
