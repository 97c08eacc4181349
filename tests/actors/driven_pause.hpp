#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>

#include "support/manual_clock.hpp"

#include <speedo/base/pause.hpp>

namespace speedo::test {

// For a thread of its own: waits until the test lets it go on.
class DrivenPause : public Pause {
 public:
  bool wait(std::chrono::milliseconds /*time*/) override {
    std::unique_lock lock(mutex_);
    pauses_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return ended_ || !pauses_; });
    return !ended_;
  }
  void end() override {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  // One wait is over. Returns once the thread has come to it.
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return pauses_; });
    pauses_ = false;
    changed_.notify_all();
  }
  // The same, and the thread has come to the next wait.
  void pass_to_next() {
    pass();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return pauses_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool pauses_ = false, ended_ = false;
};

// For the test's own thread: time passes on a clock, at once. `meanwhile`: what others do then.
class LeapingPause : public Pause {
 public:
  explicit LeapingPause(ManualClock& clock, std::function<void()> meanwhile = [] {})
      : clock_(clock), meanwhile_(std::move(meanwhile)) {}
  bool wait(std::chrono::milliseconds time) override {
    clock_.advance(time);
    meanwhile_();
    return true;
  }
  void end() override {}

 private:
  ManualClock& clock_;
  const std::function<void()> meanwhile_;
};

}  // namespace speedo::test
