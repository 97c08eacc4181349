#pragma once

#include <algorithm>
#include <optional>

#include <speedo/base/clock.hpp>
#include <speedo/base/limits.hpp>

namespace speedo {

// Time as this process has been awake. Messages that arrived while the process slept are handled
// late through nobody's fault, so the time that it slept through does not pass.
//
// Invariant: time never goes back.
class AwakeClock {
 public:
  Instant now() const { return now_; }
  // The time of a tick. How long the process slept before it, if it did.
  std::optional<Instant> tick(Instant time) {
    const Instant last = last_tick_.value_or(time);
    last_tick_ = std::max(time, last);
    const Instant gap = *last_tick_ - last;
    if (gap > kSleptThrough) return gap;
    now_ += gap;
    return std::nullopt;
  }

 private:
  Instant now_{0};
  std::optional<Instant> last_tick_;
};

}  // namespace speedo
