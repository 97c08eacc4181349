#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/clock.hpp>
#include <speedo/core/solver.hpp>
#include <speedo/train/master_session.hpp>
#include <speedo/train/schedule.hpp>

#include "caffe.pb.h"
#include "cli/report/curve_file.hpp"
#include "cli/report/rate_meter.hpp"
#include "cli/report/report.hpp"
#include "core/solver/smoothed_loss.hpp"

namespace speedo {

// Tells people how a cluster's training goes: Caffe's log lines, the live line, the curve, the
// final report. The loss of lines and curve is the mean of the last average_loss iterations, as in
// Caffe.
// Thread safety: on_progress() from any thread.
class MasterReporter {
 public:
  // `clock` and `curve` outlive the reporter; without a curve none is written. Requires: there are
  // stages.
  MasterReporter(const caffe::SolverParameter& solver, std::vector<Schedule> stages,
                 const Clock& clock, CurveFile* curve = nullptr);

  // `scores`: of each test net, if a test has just ended; progress.iteration is then the tested
  // one.
  void on_progress(const MasterProgress& progress, const std::vector<TestScores>* scores);
  // The learning rate of the iteration that follows: the solver's or the stage's policy, times the
  // scale that the stage gives it for its workers. Error: kConfig, of the policy.
  Result<float> rate(const MasterProgress& progress) const;
  Report report(const MasterProgress& last, const std::string& snapshot) const;

 private:
  void log_start(bool started);
  void log_tests(std::uint64_t iteration, const std::vector<TestScores>& scores) const;
  void log_iteration(const MasterProgress& progress, Instant now);
  void add_to_curve(const MasterProgress& progress);
  void show_live(const MasterProgress& progress, Instant now);

  const caffe::SolverParameter solver_;
  const std::vector<Schedule> stages_;
  const Clock& clock_;
  const Instant born_;

  mutable std::mutex mutex_;
  CurveFile* const curve_;  // may be null
  RateMeter meter_;
  SmoothedLoss smoothed_;
  double staleness_drawn_ = 0.0;  // its sum, and how many contributions, at the curve's last point
  std::uint64_t contributions_drawn_ = 0;
  std::uint64_t iteration_ = 0, displayed_iteration_ = 0;
  std::optional<MasterProgress> first_;  // a resumed job has merges of earlier masters
  std::optional<std::uint64_t> tested_iteration_;
  std::uint64_t workers_most_ = 0;
  bool start_logged_ = false;
  Instant displayed_at_{}, live_at_{};
  std::optional<double> seconds_to_first_merge_;
};

}  // namespace speedo
