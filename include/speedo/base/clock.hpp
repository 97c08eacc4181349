#pragma once

#include <chrono>

namespace speedo {

// Monotonic time as a value, so that sessions, the simulator and tests share one type.
using Instant = std::chrono::nanoseconds;

// Where time comes from. Thread safety: now() may be called from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant now() const = 0;  // monotonic; the origin means nothing
};

// The machine's steady clock. Lives for the whole program.
const Clock& steady_clock();

// From `start` to now, by that clock.
double seconds_since(Instant start);

}  // namespace speedo
