#pragma once

#include <cstdint>
#include <deque>

#include <speedo/base/clock.hpp>

namespace speedo {

// How fast a counter grows lately: over the last ten seconds, or over its last two steps if those
// are further apart. Memory: a few dozen bytes a second of that.
// Thread safety: one thread. Times come from the caller.
class RateWindow {
 public:
  void add(Instant now, std::uint64_t count);
  // Falls when the next step is overdue, to 0 when it is so for ten seconds. 0 before the second
  // step.
  double per_second(Instant now) const;

 private:
  struct Step {
    Instant at;
    std::uint64_t total;  // with it
  };
  std::deque<Step> steps_;
};

}  // namespace speedo
