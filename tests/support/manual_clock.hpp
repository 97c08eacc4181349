#pragma once

#include <atomic>
#include <chrono>

#include <speedo/base/clock.hpp>

namespace speedo::test {

// A clock that stands still until a test lets time pass.
class ManualClock : public Clock {
 public:
  Instant now() const override { return Instant{nanoseconds_}; }
  void advance(Instant time) { nanoseconds_ += time.count(); }

 private:
  // Not zero: a time that nobody set must not look like the present.
  std::atomic<Instant::rep> nanoseconds_{std::chrono::nanoseconds(std::chrono::hours{1}).count()};
};

}  // namespace speedo::test
