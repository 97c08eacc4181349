#include "cli/report/master_reporter.hpp"

#include "support/catch.hpp"

namespace speedo {
namespace {

// A master's progress when it has done `merges` merges in all.
MasterProgress progress_at(std::uint64_t merges) {
  MasterProgress progress;
  progress.iteration = progress.merges = merges;
  progress.contributions = 2 * merges;
  progress.discarded = merges / 10;
  progress.staleness_sum = static_cast<double>(merges);
  progress.workers_alive = 2;
  progress.training = true;
  progress.last_loss = 0.5F;
  progress.phases = {10000 * merges, 40000 * merges, 60000 * merges, 30000 * merges, 1000 * merges};
  progress.read_faults = {3, 2};
  return progress;
}

TEST_CASE("A resumed job reports what this master merged, not what earlier ones did") {
  MasterReporter reporter(caffe::SolverParameter(), std::vector<Schedule>(1), steady_clock());
  reporter.on_progress(progress_at(100), nullptr);
  reporter.on_progress(progress_at(130), nullptr);
  const Report report = reporter.report(progress_at(130), "");
  CHECK(report.iterations == 130);
  CHECK(report.merges == 30);
  CHECK(report.contributions == 60);
  CHECK(report.discarded == 3);
  CHECK(report.mean_staleness == Approx(0.5));
  CHECK(report.loss == 0.5);
  CHECK(report.data_wait_seconds == Approx(1.3));  // only ever of this master
  CHECK(report.compute_seconds == Approx(13.0));
  CHECK(report.forward_seconds == Approx(5.2));
  CHECK(report.backward_seconds == Approx(7.8));
  CHECK(report.exchange_seconds == Approx(3.9));
  CHECK(report.wait_seconds == Approx(0.13));
  CHECK(report.skipped_records == 3);
  CHECK(report.parser_deaths == 2);
  const MasterReporter idle(caffe::SolverParameter(), std::vector<Schedule>(1), steady_clock());
  const Report nothing = idle.report(MasterProgress{}, "");
  CHECK_FALSE(nothing.loss);
  CHECK_FALSE(nothing.mean_staleness);
}

TEST_CASE("A master that merged nothing found its job complete, or was stopped before") {
  caffe::SolverParameter solver;
  solver.set_max_iter(100);
  for (const std::uint64_t iteration : {99, 100}) {
    MasterReporter reporter(solver, std::vector<Schedule>(1), steady_clock());
    reporter.on_progress(progress_at(iteration), nullptr);
    CHECK(reporter.report(progress_at(iteration), "").complete == (iteration == 100));
  }
}

TEST_CASE("The test before training is no result of it") {
  MasterReporter reporter(caffe::SolverParameter(), std::vector<Schedule>(1), steady_clock());
  const std::vector<TestScores> scores(1);
  reporter.on_progress(progress_at(0), nullptr);
  reporter.on_progress(progress_at(0), &scores);
  MasterProgress last = progress_at(7);
  last.accuracy = 0.1F;
  CHECK_FALSE(reporter.report(last, "").accuracy);
  reporter.on_progress(progress_at(5), &scores);
  CHECK(reporter.report(last, "").accuracy == Approx(0.1));
  CHECK(reporter.report(last, "").tested_iteration == 5U);
}

TEST_CASE("The stage is counted from 1, in a hybrid that is repeated too") {
  MasterReporter reporter(caffe::SolverParameter(), std::vector<Schedule>(3), steady_clock());
  MasterProgress last = progress_at(7);
  last.stage = 4;
  CHECK(reporter.report(last, "").stage == 2);
}

TEST_CASE("The rate is the stage's, scaled for its workers and warmed up") {
  caffe::SolverParameter solver;
  solver.set_base_lr(0.1F);
  solver.set_lr_policy("step");
  solver.set_gamma(0.5F);
  solver.set_stepsize(100);
  Schedule plain, scaled;
  scaled.lr_scaling = LrScaling::kLinear;
  scaled.lr_warmup = 10;
  scaled.update.base_lr = 0.4F;
  const MasterReporter reporter(solver, {plain, scaled}, steady_clock());
  MasterProgress progress = progress_at(50);
  CHECK(reporter.rate(progress).value() == Approx(0.1));
  progress.stage = 1;
  progress.stage_start = 50;
  CHECK(reporter.rate(progress).value() == Approx(0.4));
  progress.iteration = 55;
  CHECK(reporter.rate(progress).value() == Approx(0.4 * 1.5));
  progress.iteration = 100;
  CHECK(reporter.rate(progress).value() == Approx(0.2 * 2.0));
  progress.workers_alive = 3;
  CHECK(reporter.rate(progress).value() == Approx(0.2 * 3.0));
}

}  // namespace
}  // namespace speedo
