#include "cli/report/master_reporter.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <speedo/base/assert.hpp>

#include "base/log.hpp"
#include "cli/report/console.hpp"
#include "cli/report/live_status.hpp"
#include "cli/solver_file.hpp"
#include "core/solver/solver_log.hpp"
#include "train/job/job_solver.hpp"

namespace speedo {

namespace {

double seconds_between(Instant from, Instant to) {
  return std::chrono::duration<double>(to - from).count();
}

double phase_seconds(std::uint64_t microseconds) {
  return static_cast<double>(microseconds) / 1e6;
}

}  // namespace

MasterReporter::MasterReporter(const caffe::SolverParameter& solver, std::vector<Schedule> stages,
                               const Clock& clock, CurveFile* curve)
    : solver_(solver),
      stages_(std::move(stages)),
      clock_(clock),
      born_(clock.now()),
      curve_(curve),
      smoothed_(static_cast<std::size_t>(std::max(1, solver.average_loss()))) {
  SPEEDO_ASSERT(!stages_.empty());
}

void MasterReporter::on_progress(const MasterProgress& progress,
                                 const std::vector<TestScores>* scores) {
  const std::lock_guard lock(mutex_);
  log_start(scores != nullptr || progress.training);
  if (curve_ != nullptr) curve_->begin(progress.iteration);
  if (scores != nullptr) {
    log_tests(progress.iteration, *scores);
    if (curve_ != nullptr && !scores->empty()) {
      curve_->add_test(progress.iteration, scores->front().accuracy, scores->front().loss);
    }
    tested_iteration_ = progress.iteration;
    return;
  }
  if (!first_) {
    first_ = progress;
    staleness_drawn_ = progress.staleness_sum;
    contributions_drawn_ = progress.contributions;
  }
  const Instant now = clock_.now();
  workers_most_ = std::max(workers_most_, progress.workers_alive);
  if (!meter_.started() && progress.training) {
    meter_.start(now, progress.iteration, progress.samples);
    displayed_at_ = now;
    iteration_ = displayed_iteration_ = progress.iteration;
  }
  if (meter_.started() && progress.iteration > iteration_) {
    if (!seconds_to_first_merge_) seconds_to_first_merge_ = seconds_between(born_, now);
    meter_.update(now, progress.iteration, progress.samples);
    smoothed_.add(progress.last_loss.value());
    log_iteration(progress, now);
    add_to_curve(progress);
    iteration_ = progress.iteration;
  }
  show_live(progress, now);
}

// Caffe's tools count the time from the line "Solving ...": before it they read nothing.
void MasterReporter::log_start(bool started) {
  if (!started || start_logged_) return;
  start_logged_ = true;
  SPEEDO_INFO("Solving {}", train_net_of(solver_).name());
  SPEEDO_INFO("Learning Rate Policy: {}", solver_.lr_policy());
}

void MasterReporter::log_tests(std::uint64_t iteration,
                               const std::vector<TestScores>& scores) const {
  for (std::size_t net = 0; net < scores.size(); ++net) {
    SPEEDO_INFO("Iteration {}, Testing net (#{})", iteration, net);
    log_outputs("Test", scores[net].scores);
  }
}

// Caffe's display lines, whenever a multiple of `display` was passed.
void MasterReporter::log_iteration(const MasterProgress& progress, Instant now) {
  const auto display = static_cast<std::uint64_t>(std::max(0, solver_.display()));
  if (display == 0 || progress.iteration / display == iteration_ / display) return;
  log_progress(
      {.iteration = static_cast<std::int64_t>(progress.iteration),
       .iterations_done = static_cast<std::int64_t>(progress.iteration - displayed_iteration_),
       .seconds = static_cast<float>(seconds_between(displayed_at_, now)),
       .display = solver_.display(),
       .loss = smoothed_.value()});
  log_outputs("Train", {{"loss", progress.last_loss.value(), 1.0F}});
  if (const auto now_used = rate(progress)) {
    SPEEDO_INFO("Iteration {}, lr = {:g}", progress.iteration, *now_used);
  }
  displayed_iteration_ = progress.iteration;
  displayed_at_ = now;
}

void MasterReporter::add_to_curve(const MasterProgress& progress) {
  if (curve_ == nullptr || !curve_->is_due(progress.iteration)) return;
  const std::uint64_t contributions = progress.contributions - contributions_drawn_;
  const double staleness = progress.staleness_sum - staleness_drawn_;
  const auto used = rate(progress);
  curve_->add({.iteration = progress.iteration,
               .loss = smoothed_.value(),
               .rate = used ? *used : std::numeric_limits<float>::quiet_NaN(),
               .workers = progress.workers_alive,
               .staleness = contributions == 0 ? 0.0
                                               : staleness / static_cast<double>(contributions)});
  contributions_drawn_ = progress.contributions;
  staleness_drawn_ = progress.staleness_sum;
}

Result<float> MasterReporter::rate(const MasterProgress& progress) const {
  const Schedule& stage = stages_[progress.stage % stages_.size()];
  SPEEDO_ASSIGN(const float rate, learning_rate(solver_of(solver_, stage.update),
                                                static_cast<std::int64_t>(progress.iteration)));
  return rate * lr_scale(stage, progress.iteration - progress.stage_start, progress.workers_alive);
}

void MasterReporter::show_live(const MasterProgress& progress, Instant now) {
  if (!has_live_line() || now - live_at_ < kLiveInterval) return;
  live_at_ = now;
  LiveStatus status;
  status.iteration = progress.iteration;
  status.iteration_max = static_cast<std::uint64_t>(std::max(0, solver_.max_iter()));
  status.merges = true;
  status.iterations_per_second = meter_.recent().iterations_per_second;
  status.images_per_second = meter_.recent().images_per_second;
  status.loss = progress.last_loss;
  status.workers = progress.workers_alive;
  status.paused = progress.paused;
  status.stage = progress.stage % stages_.size();
  status.stages = stages_.size();
  show_live_line(format_live_status(status, terminal_width(), has_colour()));
}

Report MasterReporter::report(const MasterProgress& last, const std::string& snapshot) const {
  const std::lock_guard lock(mutex_);
  const MasterProgress first = first_.value_or(MasterProgress{});
  Report report;
  report.iterations = last.iteration;
  report.merges = last.merges - first.merges;
  report.complete =
      report.merges == 0 && last.iteration >= static_cast<std::uint64_t>(solver_.max_iter());
  report.contributions = last.contributions - first.contributions;
  if (last.merges > first.merges) report.loss = last.last_loss;
  if (last.contributions > first.contributions) {
    report.mean_staleness = (last.staleness_sum - first.staleness_sum) /
                            static_cast<double>(last.contributions - first.contributions);
  }
  // A test of the weights that training began with says nothing about its result.
  const bool tested = last.iteration == first.iteration ||
                      tested_iteration_.value_or(0) > first.iteration;
  if (last.accuracy && tested) report.accuracy = *last.accuracy;
  if (last.test_loss && tested) report.test_loss = *last.test_loss;
  if (tested) report.tested_iteration = tested_iteration_;
  report.seconds = meter_.seconds();
  report.images_per_second = meter_.overall().images_per_second;
  report.workers = workers_most_;
  report.rejected = last.rejected - first.rejected;
  report.discarded = last.discarded - first.discarded;
  report.ignored = last.ignored - first.ignored;
  const PhaseTimes& phases = last.phases;
  report.data_wait_seconds = phase_seconds(phases.data_us);
  report.compute_seconds = phase_seconds(phases.compute_us());
  report.forward_seconds = phase_seconds(phases.forward_us);
  report.backward_seconds = phase_seconds(phases.backward_us);
  report.exchange_seconds = phase_seconds(phases.exchange_us);
  report.wait_seconds = phase_seconds(phases.wait_us);
  report.skipped_records = last.read_faults.skipped_records;
  report.parser_deaths = last.read_faults.parser_deaths;
  report.stage = last.stage % stages_.size() + 1;
  report.term = last.term;
  report.seconds_to_first_merge = seconds_to_first_merge_;
  report.snapshot = snapshot;
  return report;
}

}  // namespace speedo
