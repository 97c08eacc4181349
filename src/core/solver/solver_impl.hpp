#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/clock.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/core/solver.hpp>

#include "caffe.pb.h"
#include "core/solver/dynamic_loss_scale.hpp"
#include "core/kept_values.hpp"
#include "core/solver/quiet_steps.hpp"
#include "core/solver/smoothed_loss.hpp"

namespace speedo {

// The state of a solver and the steps of its loop.
struct Solver::Impl {
  caffe::SolverParameter param;
  Hooks hooks;
  FeedFactory* feeds = nullptr;  // may be null
  bool test_at_end = false;      // even if it is not due then
  SolverNets nets;
  std::unique_ptr<UpdateRule> rule;
  std::unique_ptr<KeptValues> kept;  // as the iteration found them
  std::unique_ptr<QuietSteps> quiet;           // null: every iteration waits for its loss
  std::optional<DynamicLossScale> scale;       // where gradients have a narrow range
  std::vector<TestScores> last_scores;
  SmoothedLoss smoothed{1};
  std::int64_t iteration = 0;
  // Of the data, beyond one for each iteration; the difference may wrap around.
  std::uint64_t steps_ahead = 0;
  std::int64_t first_iteration = 0;  // of this stretch
  std::int64_t last_iteration = -1;  // of solve(): what follows it is finish()'s
  std::int64_t last_snapshot = -1;
  std::int64_t sound_iteration = -1;  // whose weights are known to give a finite loss
  std::int64_t tested_iteration = -1;
  std::int64_t loud_iteration = -1;  // whose loss was not finite among quiet ones
  std::int64_t displayed_iteration = 0;
  Instant displayed_at{};
  Times times;
  int non_finite_in_a_row = 0;
  int non_finite_max = kNonFiniteRunsMax;
  bool stopped = false;
  bool in_last_test = false;
  bool snapshot_wanted = false;  // a signal asked for the one that follows the last test

  using Action = Solver::Hooks::Action;

  // True every `interval` iterations; an interval of 0 means never.
  static bool due(std::int64_t iteration, std::int64_t interval) {
    return interval > 0 && iteration % interval == 0;
  }
  bool display_due() const { return due(iteration, param.display()); }

  void start(std::int64_t at);
  Result<void> iterate();
  Result<void> run_until(std::int64_t end);
  std::chrono::nanoseconds waited() const;
  // The loss of an iteration; skipped: its gradient overflowed, and there is no update.
  struct Pass {
    float loss = 0.0F;
    bool is_skipped = false;
  };
  Result<Pass> pass_over_data();
  Result<std::string> find_non_finite();
  Result<bool> accept_loss(float loss);
  void show_progress(float loss);
  void show_rate() const;
  void update();
  void read_from(std::int64_t at);
  Result<bool> gives_finite_loss(std::int64_t at, int batches);
  Result<void> refuse_diverged();
  Result<void> snapshot();
  Result<void> poll();
  Result<void> test_if_due();
  Result<std::vector<TestScores>> test_all();
  Result<bool> test(std::size_t index, TestScores& scores);
  void log_test(const TestScores& scores) const;
  bool last_test_due() const;
  Result<std::vector<TestScores>> test_last();
  Result<void> write_last_snapshot(const Result<std::vector<TestScores>>& tested);
  Result<void> show_last_loss();
  Result<void> finish();

  // solver_quiet.cpp: iterations whose losses stay on the device.
  bool is_quiet() const;
  Result<void> iterate_quietly();
  Result<bool> settle();
};

}  // namespace speedo
