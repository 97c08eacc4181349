#pragma once

#include <cstdint>
#include <string>

#include <speedo/base/clock.hpp>
#include <speedo/core/solver.hpp>

#include "cli/report/rate_meter.hpp"
#include "cli/report/report.hpp"

namespace speedo {

// The live line and the final report of training in one process; the solver logs Caffe's lines.
// Thread safety: one thread at a time.
class TrainReporter {
 public:
  // `clock` outlives the reporter.
  TrainReporter(std::int64_t iteration_max, const Clock& clock);

  void start(std::int64_t iteration, std::int64_t images_per_iteration);
  void update(std::int64_t iteration, float loss);
  Report report(const Solver& solver, const std::string& snapshot) const;

 private:
  const std::uint64_t iteration_max_;
  const Clock& clock_;
  RateMeter meter_;
  std::uint64_t images_per_iteration_ = 0;
  std::uint64_t first_iteration_ = 0;
  std::uint64_t iteration_ = 0;
  Instant live_at_{};
};

}  // namespace speedo
