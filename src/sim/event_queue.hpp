#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <speedo/base/clock.hpp>

namespace speedo::sim {

// Virtual time: actions in the order of their time, and of being queued where times are equal. The
// order is total, so the same actions give the same run.
class EventQueue : public Clock {
 public:
  Instant now() const override { return now_; }
  std::uint64_t steps() const { return steps_; }
  bool empty() const { return heap_.empty(); }

  // A time that has passed means now.
  void at(Instant when, std::function<void()> action);
  void after(Instant delay, std::function<void()> action) { at(now_ + delay, std::move(action)); }

  // Does the next action; false if there is none.
  bool step();
  // Does everything up to `end`, and is there then.
  void run_until(Instant end);

 private:
  struct Entry {
    Instant when;
    std::uint64_t sequence;
    std::function<void()> action;
  };
  static bool later(const Entry& a, const Entry& b);
  std::vector<Entry> heap_;
  Instant now_{0};
  std::uint64_t sequence_ = 0, steps_ = 0;
};

}  // namespace speedo::sim
