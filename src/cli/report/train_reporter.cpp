#include "cli/report/train_reporter.hpp"

#include <algorithm>
#include <chrono>

#include "cli/report/console.hpp"
#include "cli/report/live_status.hpp"

namespace speedo {

TrainReporter::TrainReporter(std::int64_t iteration_max, const Clock& clock)
    : iteration_max_(static_cast<std::uint64_t>(std::max<std::int64_t>(0, iteration_max))),
      clock_(clock) {}

void TrainReporter::start(std::int64_t iteration, std::int64_t images_per_iteration) {
  images_per_iteration_ = static_cast<std::uint64_t>(images_per_iteration);
  first_iteration_ = iteration_ = static_cast<std::uint64_t>(iteration);
  meter_.start(clock_.now(), iteration_, iteration_ * images_per_iteration_);
}

void TrainReporter::update(std::int64_t iteration, float loss) {
  const Instant now = clock_.now();
  iteration_ = static_cast<std::uint64_t>(iteration);
  meter_.update(now, iteration_, iteration_ * images_per_iteration_);
  if (!has_live_line() || now - live_at_ < kLiveInterval) return;
  live_at_ = now;
  LiveStatus status;
  status.iteration = iteration_;
  status.iteration_max = iteration_max_;
  status.iterations_per_second = meter_.recent().iterations_per_second;
  status.images_per_second = meter_.recent().images_per_second;
  status.loss = loss;
  show_live_line(format_live_status(status, terminal_width(), has_colour()));
}

Report TrainReporter::report(const Solver& solver, const std::string& snapshot) const {
  Report report;
  report.iterations = iteration_;
  report.merges = iteration_ - first_iteration_;
  report.complete = iteration_ == first_iteration_ && iteration_ >= iteration_max_;
  if (iteration_ > first_iteration_) report.loss = solver.smoothed_loss();
  if (!solver.last_scores().empty()) {
    report.accuracy = solver.last_scores().front().accuracy;
    report.test_loss = solver.last_scores().front().loss;
    report.tested_iteration = static_cast<std::uint64_t>(solver.tested_iteration());
  }
  report.seconds = meter_.seconds();
  report.images_per_second = meter_.overall().images_per_second;
  report.workers = 1;
  const Solver::Times times = solver.times();
  report.data_wait_seconds = std::chrono::duration<double>(times.data_wait).count();
  report.compute_seconds = std::chrono::duration<double>(times.compute).count();
  report.snapshot = snapshot;
  return report;
}

}  // namespace speedo
