#include "train/trainer/run_clock.hpp"

#include <algorithm>

namespace speedo {
namespace {

// The part of what is left that goes to one phase. Counters of several threads may claim more.
std::uint64_t take_microseconds(Instant part, Instant& left) {
  const Instant taken = std::clamp(part, Instant{0}, left);
  left -= taken;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(taken).count());
}

}  // namespace

PhaseTimes RunClock::phases() const {
  const Counters now = counters();
  const Instant data = now.data - before_.data, weights = now.weights - before_.weights;
  Instant steps = steps_end_ - steps_start_;
  Instant around = steps_start_ - start_ + (clock_.now() - steps_end_);
  PhaseTimes phases;
  phases.data_us = take_microseconds(data, steps);
  phases.exchange_us = take_microseconds(weights, steps) + take_microseconds(around, around);
  phases.forward_us = take_microseconds(now.forward - before_.forward - data - weights, steps);
  phases.backward_us = take_microseconds(steps, steps);
  return phases;
}

}  // namespace speedo
