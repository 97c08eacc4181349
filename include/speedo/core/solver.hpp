#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <speedo/base/limits.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/net.hpp>
#include <speedo/core/update_rule.hpp>

namespace caffe {
class NetParameter;
class SolverParameter;
class SolverState;
}  // namespace caffe

namespace speedo {

// What a test pass found: the mean of every element of the net's outputs, in output order.
struct TestScores {
  struct Score {
    std::string name;
    float value;
    float loss_weight;
  };
  std::vector<Score> scores;
  int passes = 0;  // how many ran; fewer than asked for if `stop` said so
  // The first score that an Accuracy layer made, and the weighted loss; NaN if the net has none.
  float accuracy = std::numeric_limits<float>::quiet_NaN();
  float loss = std::numeric_limits<float>::quiet_NaN();
  bool has_loss = false;  // else the loss is NaN for that reason
};

// Runs `iterations` forward passes of a TEST net. Every test begins at batch 0, so that tests of
// one run can be compared: each sees the same records (Caffe goes on where the last test stopped).
// `stop` (may be empty) is asked before each pass. Without passes, as of a net whose test_iter is
// 0, there are no scores. `forward` (empty: Net::forward()) makes a pass.
// Requires: iterations >= 0. Error: kData.
Result<TestScores> run_test(Net& net, int iterations, const std::function<bool()>& stop = {},
                            const std::function<Result<float>(Net&)>& forward = {});

struct SolverOptions {
  Backend* backend = nullptr;  // required
  FeedFactory* feeds = nullptr;
  SinkFactory* sinks = nullptr;  // see NetOptions; solve() finishes what its nets wrote
  std::filesystem::path base;    // folder of the solver prototxt, for `net:` and data paths
  double start_fraction = 0.0;
  bool plan_only = false;    // see NetOptions; nothing is logged then
  bool shares_gradients = false;  // see NetOptions; the train net's
  bool logs_set_up = false;       // see NetOptions; of all nets
  bool test_at_end = false;  // solve() tests its last weights even if test_interval says no
  int non_finite_max = kNonFiniteRunsMax;  // see Solver
};

// Gives a solver without random_seed (or with a negative one) a seed of its own, and logs it, so
// that every run can be repeated.
void settle_seed(caffe::SolverParameter& solver);

// Replaces the files that net, train_net and test_net name by their content (net_param,
// train_net_param, test_net_param), so that the solver can be sent to where the files are not.
// Returns the folder of the train net's file, which its data paths may be relative to, or `base`.
// Errors: kNotFound, and kConfig with file, line and column.
Result<std::filesystem::path> inline_nets(caffe::SolverParameter& solver,
                                          const std::filesystem::path& base);

// The nets that a solver prototxt describes: train net and test nets (sharing its weights), by
// Caffe's precedence of net, net_param, train_net, train_net_param, test_net..., train_state,
// test_state. Relative data paths of a net are tried from its own file's folder (from `base` for
// inline nets). A solver without a seed gets one that is not logged: call settle_seed() first.
struct SolverNets {
  std::unique_ptr<Net> train;
  std::vector<std::unique_ptr<Net>> tests;
};
Result<SolverNets> create_nets(const caffe::SolverParameter& solver, const SolverOptions& options);

// Caffe's training loop in one process. Iteration i reads the batches i*iter_size and following, so
// a restored run goes on with the data (and the random draws) that an unbroken one would have had.
//
// An iteration whose loss is NaN or infinite does not change the weights, and the layer and blob
// that were not finite first are named; SolverOptions::non_finite_max of them in a row end the
// training, and so do fewer of them at its end. No snapshot is written of weights that are not
// finite or give no finite loss, nor of the last ones if their test has no finite one: training has
// diverged, and ends.
// Thread safety: one thread at a time.
class Solver {
 public:
  // What the loop reports and asks. Any may be empty.
  struct Hooks {
    // Writes the two files of a snapshot atomically, as `<snapshot_prefix>_iter_<iteration>...`;
    // sets state.learned_net to the model file's name first. Empty: no snapshots.
    std::function<Result<void>(std::int64_t iteration, const caffe::NetParameter& model,
                               caffe::SolverState& state)>
        snapshot;
    enum class Action { kContinue, kStop, kSnapshot, kSnapshotAndStop };
    // Asked after every iteration and before every pass of a test. An answer counts once; kStop
    // ends solve() with its usual final snapshot (unless snapshot_after_train is false), without a
    // test.
    std::function<Action()> poll;
    // After each iteration: updates done so far and the loss of this one (not smoothed).
    std::function<void(std::int64_t iteration, float loss)> progress;
  };
  // Errors: kConfig naming the field; kUnsupported; those of Net::create() and of the data.
  static Result<std::unique_ptr<Solver>> create(const caffe::SolverParameter& solver,
                                                const SolverOptions& options, Hooks hooks);
  ~Solver();

  Net& net();
  const std::vector<std::unique_ptr<Net>>& test_nets() const;
  std::int64_t iteration() const;  // updates done so far
  bool stopped() const;            // poll asked the last step() or solve() to end early

  // Goes on from a snapshot. Error: kMismatch for the state or the weights of another net; the
  // solver is then to be thrown away.
  Result<void> restore(const caffe::SolverState& state, const caffe::NetParameter& model);
  // The next iteration reads the batches step*iter_size and following, the one after it those
  // behind them: where the iterations before did not take a step each. After restore().
  void read_from_step(std::uint64_t step);
  // `count` iterations: tests, display lines, updates and snapshots where due. Errors: kNotFinite
  // when the loss is NaN or infinite non_finite_max times in a row; kData; kCannotWrite.
  Result<void> step(std::int64_t count);
  // Caffe's Solve(): from the current iteration to max_iter, final snapshot, loss and test. Errors:
  // those of step(); kNotFinite if the last loss, or one of the last test, is NaN or infinite.
  Result<void> solve();
  // One TestScores per test net. Empty if poll asked to stop meanwhile.
  Result<std::vector<TestScores>> test_all();

  // Where the time of the iterations went so far; tests, snapshots and lines of the log aside.
  struct Times {
    std::chrono::nanoseconds data_wait{0}, compute{0};
  };
  Times times() const;
  float smoothed_loss() const;                         // over average_loss iterations
  const std::vector<TestScores>& last_scores() const;  // of the last complete test_all()
  std::int64_t tested_iteration() const;               // whose weights those are of; -1: none yet

 private:
  struct Impl;
  explicit Solver(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// What iter_size passes have left: the mean loss, and whether all gradients are finite.
struct Accumulated {
  float loss = 0.0F;
  bool has_finite_gradients = true;
};
// iter_size forward and backward passes, gradients summed in the net's arena (cleared first), and
// unscaled.
Result<Accumulated> run_passes(Net& net, int iter_size);
// iter_size forward and backward passes, gradients summed in the net's arena (cleared first).
// Returns the mean loss, or NaN if a gradient is not finite.
Result<float> accumulate_gradients(Net& net, int iter_size);

}  // namespace speedo
