#pragma once

#include <chrono>
#include <cstdint>

#include <speedo/base/clock.hpp>
#include <speedo/train/phase_times.hpp>

#include "train/trainer/learner.hpp"
#include "train/trainer/trainer_exchange.hpp"

namespace speedo {

// Divides the time of one run into its phases: it begins with the clock, then come the steps, then
// the contribution is stored. What overlaps the steps costs no time but what they wait for it.
// Thread safety: one thread.
class RunClock {
 public:
  // All outlive it.
  RunClock(const Clock& clock, const Learner& learner, const RecordExchange& exchange)
      : clock_(clock), learner_(learner), exchange_(exchange), start_(clock.now()),
        steps_start_(start_), steps_end_(start_), before_(counters()) {}

  Instant start() const { return start_; }
  void steps_begin() { steps_start_ = clock_.now(); }
  void steps_end() { steps_end_ = clock_.now(); }
  // At the end of the run, all but the wait before it.
  PhaseTimes phases() const;

 private:
  struct Counters {
    std::chrono::nanoseconds data, weights, forward;
  };
  Counters counters() const {
    return {learner_.data_waited(), exchange_.waited(), learner_.gone_forward()};
  }

  const Clock& clock_;
  const Learner& learner_;
  const RecordExchange& exchange_;
  const Instant start_;
  Instant steps_start_, steps_end_;
  const Counters before_;
};

}  // namespace speedo
