#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <speedo/base/limits.hpp>
#include <speedo/core/solver.hpp>

#include "core/net_support.hpp"
#include "core/solver/smoothed_loss.hpp"
#include "core/solver_support.hpp"

namespace speedo {
namespace {

using test::small_solver;
using test::weights_of;
using test::World;
using Action = Solver::Hooks::Action;

std::vector<float> losses_of(World& world, const caffe::SolverParameter& message, int count) {
  std::vector<float> losses;
  Solver::Hooks hooks;
  hooks.progress = [&](std::int64_t, float loss) { losses.push_back(loss); };
  const auto solver = world.solver(message, std::move(hooks));
  REQUIRE(solver->step(count));
  return losses;
}

std::vector<float> values_of(Solver& solver, const ParameterSlot& slot) {
  const std::vector<float> weights = weights_of(solver);
  const auto begin = weights.begin() + slot.offset;
  return {begin, begin + slot.count()};
}

TEST_CASE("the same seed gives the same losses, bit by bit", "[solver]") {
  World world;
  const auto first = losses_of(world, small_solver(), 10);
  CHECK(first.size() == 10);
  CHECK(first == losses_of(world, small_solver(), 10));
  caffe::SolverParameter other = small_solver();
  other.set_random_seed(4);
  CHECK(first != losses_of(world, other, 10));
}

TEST_CASE("training lowers the loss and tests find it", "[solver]") {
  World world;
  const auto solver = world.solver(small_solver("max_iter: 200 test_iter: 5 test_interval: 100"));
  REQUIRE(solver->solve());
  REQUIRE(solver->last_scores().size() == 1);
  CHECK(solver->last_scores()[0].accuracy > 0.9F);
  CHECK(solver->last_scores()[0].loss < 0.5F);
  CHECK(solver->last_scores()[0].passes == 5);
  CHECK(solver->iteration() == 200);
}

TEST_CASE("the time that iterations wait for data is told, without that of tests", "[solver]") {
  World world;
  const auto solver =
      world.solver(small_solver("max_iter: 100 iter_size: 2 test_iter: 5 test_interval: 2"));
  CHECK(solver->times().data_wait.count() == 0);
  REQUIRE(solver->step(6));
  CHECK(solver->times().data_wait == std::chrono::milliseconds(6 * 2));
  CHECK(solver->times().compute.count() != 0);
}

struct Saved {
  caffe::NetParameter model;
  caffe::SolverState state;
};

TEST_CASE("a run resumed from a snapshot is the unbroken run, bit by bit", "[solver]") {
  for (const char* extra : {"", "iter_size: 2 clip_gradients: 0.5",
                            "base_lr: 0.2 lr_policy: \"multistep\" gamma: 0.5 stepvalue: 4 "
                            "stepvalue: 12"}) {
    INFO(extra);
    World world;
    const caffe::SolverParameter message = small_solver(extra);
    const auto unbroken = world.solver(message);
    REQUIRE(unbroken->step(20));

    Saved saved;
    Solver::Hooks hooks;
    hooks.snapshot = [&](std::int64_t iteration, const caffe::NetParameter& model,
                         caffe::SolverState& state) -> Result<void> {
      CHECK(iteration == 10);
      // Through the bytes of the files, as another process would get it.
      saved.model.ParseFromString(model.SerializeAsString());
      saved.state.ParseFromString(state.SerializeAsString());
      return {};
    };
    caffe::SolverParameter first = message;
    first.set_snapshot(10);
    REQUIRE(world.solver(first, std::move(hooks))->step(10));

    const auto second = world.solver(message);
    REQUIRE(second->restore(saved.state, saved.model));
    CHECK(second->iteration() == 10);
    REQUIRE(second->step(10));
    CHECK(weights_of(*second) == weights_of(*unbroken));
  }
}

TEST_CASE("training goes on with another step of the data than its iteration's", "[solver]") {
  World world;
  std::vector<bool> finite;
  Solver::Hooks hooks;
  hooks.progress = [&](std::int64_t, float loss) { finite.push_back(std::isfinite(loss)); };
  const auto solver = world.solver(small_solver("iter_size: 1", "broken once"), std::move(hooks));
  solver->read_from_step(1);
  REQUIRE(solver->step(2));
  REQUIRE(solver->step(2));
  CHECK(finite == std::vector<bool>{true, true, false, true});  // batch 3 is broken
  solver->read_from_step(3);
  REQUIRE(solver->step(2));
  CHECK(finite == std::vector<bool>{true, true, false, true, false, true});
}

TEST_CASE("tests do not change what is trained", "[solver]") {
  World world;
  const auto plain = world.solver(small_solver());
  const auto tested = world.solver(small_solver("test_iter: 3 test_interval: 2"));
  REQUIRE(plain->step(20));
  REQUIRE(tested->step(20));
  CHECK(weights_of(*plain) == weights_of(*tested));
}

TEST_CASE("tests may have a layer of their own, with weights that nothing trains", "[solver]") {
  World world;
  caffe::SolverParameter message = small_solver("test_iter: 3 test_interval: 2 max_iter: 4");
  message.mutable_net_param()->MergeFrom(
      net_message(product("probe", "data", "include { phase: TEST }", 1)));
  const auto plain = world.solver(small_solver("max_iter: 4"));
  const auto probed = world.solver(message);
  const auto first = probed->test_all();
  REQUIRE(plain->solve());
  REQUIRE(probed->solve());
  CHECK(weights_of(*plain) == weights_of(*probed));
  const auto probe_of = [](const TestScores& test) {
    std::vector<float> values;
    for (const auto& score : test.scores) {
      if (score.name == "probe") values.push_back(score.value);
    }
    return values;
  };
  REQUIRE(first.has_value());
  REQUIRE(probe_of((*first)[0]).size() == 8);
  CHECK(probe_of((*first)[0])[0] != 0.0F);
  CHECK(probe_of((*first)[0]) == probe_of(probed->last_scores()[0]));
}

TEST_CASE("every test of a net sees the same batches", "[solver]") {
  World world;
  const auto solver = world.solver(small_solver("test_iter: 3 test_interval: 100"));
  const auto first = solver->test_all();
  const auto second = solver->test_all();
  REQUIRE(first.has_value());
  REQUIRE(second.has_value());
  CHECK((*first)[0].loss == (*second)[0].loss);
}

TEST_CASE("a test net with test_iter 0 is built and never computed", "[solver]") {
  World world;
  const auto solver =
      world.solver(small_solver("max_iter: 4 test_iter: 0 test_iter: 2 test_interval: 2"));
  const auto tested = solver->test_all();
  REQUIRE(tested.has_value());
  REQUIRE(tested->size() == 2);
  CHECK((*tested)[0].passes == 0);
  CHECK((*tested)[0].scores.empty());
  CHECK((*tested)[1].passes == 2);
  REQUIRE(solver->solve());
}

TEST_CASE("debug_info changes nothing but the log", "[solver]") {
  World world;
  const auto plain = world.solver(small_solver("iter_size: 2"));
  const auto debug = world.solver(small_solver("iter_size: 2 display: 1 debug_info: true"));
  REQUIRE(plain->step(5));
  REQUIRE(debug->step(5));
  CHECK(weights_of(*plain) == weights_of(*debug));
}

TEST_CASE("snapshots come at their iterations and after the last", "[solver]") {
  const auto snapshots = [](const std::string& extra) {
    World world;
    std::vector<std::int64_t> iterations;
    Solver::Hooks hooks;
    hooks.snapshot = [&](std::int64_t iteration, const caffe::NetParameter& model,
                         caffe::SolverState& state) -> Result<void> {
      CHECK(model.layer_size() > 0);
      CHECK(state.iter() == iteration);
      iterations.push_back(iteration);
      return {};
    };
    REQUIRE(world.solver(small_solver(extra), std::move(hooks))->solve());
    return iterations;
  };
  CHECK(snapshots("snapshot: 8") == std::vector<std::int64_t>{8, 16, 20});
  CHECK(snapshots("snapshot: 10") == std::vector<std::int64_t>{10, 20});
  CHECK(snapshots("snapshot: 8 snapshot_after_train: false") == std::vector<std::int64_t>{8, 16});
  CHECK(snapshots("") == std::vector<std::int64_t>{20});
}

TEST_CASE("a run resumed where it ended writes the snapshot that is due there only once") {
  for (const bool is_due : {true, false}) {
    World world;
    Saved saved;
    int written = 0;
    const auto solver = [&] {
      Solver::Hooks hooks;
      hooks.snapshot = [&](std::int64_t, const caffe::NetParameter& model,
                           caffe::SolverState& state) -> Result<void> {
        saved = {model, state};
        written += 1;
        return {};
      };
      return world.solver(small_solver(is_due ? "snapshot: 20" : ""), std::move(hooks));
    };
    REQUIRE(solver()->solve());
    CHECK(written == 1);
    const auto resumed = solver();
    REQUIRE(resumed->restore(saved.state, saved.model));
    REQUIRE(resumed->solve());
    CHECK(written == (is_due ? 1 : 2));
  }
}

TEST_CASE("a snapshot that cannot be written ends the run with its error", "[solver]") {
  World world;
  Solver::Hooks hooks;
  hooks.snapshot = [](std::int64_t, const caffe::NetParameter&, caffe::SolverState&) {
    return Result<void>(Error{ErrorCode::kCannotWrite, "no room"});
  };
  const auto solver = world.solver(small_solver("snapshot: 5"), std::move(hooks));
  const Result<void> result = solver->solve();
  REQUIRE(!result);
  CHECK(result.error().code == ErrorCode::kCannotWrite);
  CHECK(solver->iteration() == 5);
}

TEST_CASE("poll stops a run, with a snapshot or without", "[solver]") {
  const auto stop_at_7 = [](Action action, const std::string& extra) {
    World world;
    std::vector<std::int64_t> snapshots;
    Solver* running = nullptr;
    Solver::Hooks hooks;
    hooks.poll = [&] { return running->iteration() == 7 ? action : Action::kContinue; };
    hooks.snapshot = [&](std::int64_t iteration, const caffe::NetParameter&,
                         caffe::SolverState&) -> Result<void> {
      snapshots.push_back(iteration);
      return {};
    };
    const auto solver = world.solver(small_solver(extra), std::move(hooks));
    running = solver.get();
    REQUIRE(solver->solve());
    CHECK(solver->stopped());
    CHECK(solver->iteration() == 7);
    return snapshots;
  };
  const std::string no_last = "snapshot_after_train: false";
  CHECK(stop_at_7(Action::kStop, no_last).empty());
  CHECK(stop_at_7(Action::kStop, "") == std::vector<std::int64_t>{7});
  CHECK(stop_at_7(Action::kSnapshotAndStop, no_last) == std::vector<std::int64_t>{7});
  CHECK(stop_at_7(Action::kSnapshotAndStop, "") == std::vector<std::int64_t>{7});
}

TEST_CASE("poll can interrupt a test", "[solver]") {
  World world;
  int asked = 0;
  Solver::Hooks hooks;
  hooks.poll = [&] { return ++asked == 3 ? Action::kStop : Action::kContinue; };
  const auto solver = world.solver(small_solver("test_iter: 50 test_interval: 10"), hooks);
  REQUIRE(solver->solve());
  CHECK(solver->stopped());
  CHECK(solver->iteration() == 0);
  CHECK(solver->last_scores().empty());
}

TEST_CASE("losses that are not finite change nothing and end the run in time", "[solver]") {
  World world;
  std::vector<float> before;
  Solver* running = nullptr;
  Solver::Hooks hooks;
  hooks.progress = [&](std::int64_t iteration, float) {
    if (iteration == 3) before = weights_of(*running);
  };
  const auto solver = world.solver(small_solver("", "broken"), std::move(hooks));
  running = solver.get();
  const Result<void> result = solver->solve();
  REQUIRE(!result);
  CHECK(result.error().code == ErrorCode::kNotFinite);
  CHECK(result.error().message.find("iteration 12") != std::string::npos);
  CHECK(result.error().message.find("base_lr") != std::string::npos);
  CHECK(solver->iteration() == 3 + kNonFiniteRunsMax - 1);
  CHECK(weights_of(*solver) == before);
}

// What solve() ended with, and the iterations of the snapshots that it wrote.
struct Ended {
  Result<void> result;
  std::vector<std::int64_t> snapshots;
};

// `poll` is asked with the iteration.
Ended solve(const caffe::SolverParameter& message,
            const std::function<Action(std::int64_t)>& poll = {}) {
  World world;
  std::vector<std::int64_t> snapshots;
  Solver* running = nullptr;
  Solver::Hooks hooks;
  if (poll) hooks.poll = [&] { return poll(running->iteration()); };
  hooks.snapshot = [&](std::int64_t iteration, const caffe::NetParameter&, caffe::SolverState&) {
    snapshots.push_back(iteration);
    return Result<void>();
  };
  const auto solver = world.solver(message, std::move(hooks));
  running = solver.get();
  Result<void> result = solver->solve();
  return {std::move(result), std::move(snapshots)};
}

// That it ended as diverged, with these snapshots.
void check_diverged(const Ended& ended, const std::vector<std::int64_t>& snapshots) {
  REQUIRE_FALSE(ended.result);
  CHECK(ended.result.error().code == ErrorCode::kNotFinite);
  CHECK(ended.result.error().message.find("is written; lower base_lr") != std::string::npos);
  CHECK(ended.snapshots == snapshots);
}

TEST_CASE("a run that ends before so many losses were not finite has diverged all the same",
          "[solver]") {
  for (const char* fields : {"max_iter: 4", "max_iter: 9", "max_iter: 7 iter_size: 2"}) {
    INFO(fields);
    check_diverged(solve(small_solver(fields, "broken")), {});
  }
  for (const char* rate : {"1e30", "1e37"}) {
    INFO(rate);
    check_diverged(solve(small_solver("max_iter: 3 base_lr: " + std::string(rate))), {});
  }
}

TEST_CASE("a snapshot that is due is none of a training that has diverged", "[solver]") {
  check_diverged(solve(small_solver("max_iter: 4 snapshot: 2", "broken")), {2});
  check_diverged(solve(small_solver("max_iter: 8 snapshot: 2", "broken")), {2});
  check_diverged(solve(small_solver("max_iter: 4 snapshot: 2 base_lr: 1e30")), {});
}

TEST_CASE("a signal gets no snapshot of a training that has diverged", "[solver]") {
  for (const Action action : {Action::kSnapshot, Action::kSnapshotAndStop, Action::kStop}) {
    const auto at_4 = [&](std::int64_t at) { return at == 4 ? action : Action::kContinue; };
    check_diverged(solve(small_solver("", "broken"), at_4), {});
  }
}

TEST_CASE("what only the last update has spoilt is found before the snapshot", "[solver]") {
  for (const char* fields : {"", " snapshot: 1", " snapshot_after_train: false"}) {
    INFO(fields);
    check_diverged(solve(small_solver("max_iter: 1 base_lr: 1e30" + std::string(fields))), {});
  }
}

// Trains on good data and tests on data that are none.
caffe::SolverParameter badly_tested(const std::string& fields) {
  caffe::SolverParameter solver = small_solver(fields);
  solver.mutable_train_net_param()->Swap(solver.mutable_net_param());
  solver.clear_net_param();
  *solver.add_test_net_param() = small_solver("", "broken").net_param();
  return solver;
}

TEST_CASE("a last test without a finite loss leaves no snapshot of the last weights", "[solver]") {
  check_diverged(solve(badly_tested("max_iter: 4 test_iter: 5 test_interval: 4")), {});
  check_diverged(solve(badly_tested("max_iter: 4 test_iter: 5 test_interval: 4 snapshot: 2")), {2});
  const auto ask_at_4 = [](std::int64_t at) {
    return at == 4 ? Action::kSnapshot : Action::kContinue;
  };
  check_diverged(solve(badly_tested("max_iter: 4 test_iter: 5 test_interval: 4"), ask_at_4), {});
  const std::string no_last = "max_iter: 4 snapshot_after_train: false";
  CHECK(solve(small_solver(no_last), ask_at_4).snapshots == std::vector<std::int64_t>{4});
}

TEST_CASE("to look whether a snapshot is worth writing changes nothing of the training",
          "[solver]") {
  World world;
  const auto plain = world.solver(small_solver("iter_size: 2"));
  REQUIRE(plain->step(8));
  Solver::Hooks hooks;
  hooks.snapshot = [](std::int64_t, const caffe::NetParameter&, caffe::SolverState&) {
    return Result<void>();
  };
  const auto looked_at = world.solver(small_solver("iter_size: 2 snapshot: 3"), std::move(hooks));
  REQUIRE(looked_at->step(8));
  CHECK(weights_of(*plain) == weights_of(*looked_at));
}

TEST_CASE("nor does it touch what an LSTM carries from batch to batch", "[solver]") {
  const auto losses = [](int snapshot) {
    caffe::SolverParameter message = small_solver("base_lr: 0");
    message.set_snapshot(snapshot);
    *message.mutable_net_param() = net_message(R"(
      layer { name: "d" type: "DummyData" top: "x" top: "cont"
              dummy_data_param { shape { dim: 2 dim: 1 dim: 1 } shape { dim: 2 dim: 1 }
                                 data_filler { value: 1 } data_filler { value: 1 } } }
      layer { name: "l" type: "LSTM" bottom: "x" bottom: "cont" top: "h"
              recurrent_param { num_output: 1 weight_filler { value: 0.5 } } }
      layer { name: "s" type: "Reduction" bottom: "h" top: "s" loss_weight: 1 })");
    World world;
    std::vector<float> result;
    int snapshots = 0;
    Solver::Hooks hooks;
    hooks.progress = [&](std::int64_t, float loss) { result.push_back(loss); };
    hooks.snapshot = [&](std::int64_t, const caffe::NetParameter&, caffe::SolverState&) {
      ++snapshots;
      return Result<void>();
    };
    REQUIRE(world.solver(message, std::move(hooks))->step(6));
    CHECK((snapshots > 0) == (snapshot > 0));
    return result;
  };
  const std::vector<float> undisturbed = losses(0);
  CHECK(std::is_sorted(undisturbed.begin(), undisturbed.end(), std::less_equal<>()));
  CHECK(losses(2) == undisturbed);
}

TEST_CASE("one last batch that is no good costs the run its success, not its weights", "[solver]") {
  const Ended ended = solve(small_solver("max_iter: 4", "broken once"));
  REQUIRE_FALSE(ended.result);
  CHECK(ended.result.error().code == ErrorCode::kNotFinite);
  CHECK(ended.result.error().message.find("look for values in the data") != std::string::npos);
  CHECK(ended.snapshots == std::vector<std::int64_t>{4});
  CHECK(solve(small_solver("max_iter: 5", "broken once")).result);
}

TEST_CASE("weights that are not finite are no snapshot", "[solver]") {
  World world;
  int written = 0;
  Solver::Hooks hooks;
  hooks.snapshot = [&](std::int64_t, const caffe::NetParameter&, caffe::SolverState&) {
    ++written;
    return Result<void>();
  };
  const auto solver = world.solver(small_solver("snapshot: 1"), std::move(hooks));
  REQUIRE(solver->step(1));
  CHECK(written == 1);
  test::set_value(world.backend->device(), solver->net().weights().data(),
                  std::numeric_limits<float>::infinity());
  const Result<void> result = solver->step(1);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::kNotFinite);
  CHECK(written == 1);
}

TEST_CASE("a gradient that is not finite makes the loss not finite", "[solver]") {
  const auto net = make_net(
      "layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: 2 dim: 3 dim: 8 "
      "dim: 8 } } }\n"
      "layer { name: 'label' type: 'Input' top: 'label' input_param { shape { dim: 2 } } }\n"
      "layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv' convolution_param { "
      "num_output: 16 kernel_size: 3 weight_filler { type: 'msra' } } }\n"
      "layer { name: 'relu' type: 'ReLU' bottom: 'conv' top: 'conv' }\n"
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'conv' top: 'ip' inner_product_param { "
      "num_output: 3 weight_filler { type: 'msra' } } }\n"
      "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n");
  std::vector<float> images(2 * 3 * 8 * 8, 0.5F);
  net->blob("data")->set_values(test_backend(), images);
  const auto finite = accumulate_gradients(*net, 1);
  REQUIRE(finite.has_value());
  CHECK(std::isfinite(*finite));
  images[100] = std::numeric_limits<float>::quiet_NaN();
  net->blob("data")->set_values(test_backend(), images);
  const auto damaged = accumulate_gradients(*net, 1);
  REQUIRE(damaged.has_value());
  CHECK(std::isnan(*damaged));
}

// Puts a BatchNorm in place on the data, behind the data layers. Returns it.
caffe::LayerParameter& normalize_data(caffe::SolverParameter& message) {
  auto& layers = *message.mutable_net_param()->mutable_layer();
  caffe::LayerParameter& norm = *layers.Add();
  norm.set_name("norm");
  norm.set_type("BatchNorm");
  norm.add_bottom("data");
  norm.add_top("data");
  for (int i = layers.size() - 1; i > 1; --i) layers.SwapElements(i, i - 1);
  return norm;
}

TEST_CASE("losses that are not finite leave no trace in statistics", "[solver]") {
  World world;
  caffe::SolverParameter message = small_solver("", "broken");
  normalize_data(message);
  const auto solver = world.solver(message);
  REQUIRE_FALSE(solver->solve());
  std::size_t seen = 0;
  for (const ParameterSlot& slot : solver->net().layout().slots()) {
    if (slot.layer != "norm") continue;
    for (const float value : values_of(*solver, slot)) CHECK(std::isfinite(value));
    if (slot.index == 2) CHECK(values_of(*solver, slot)[0] == Approx(2.997));  // three batches
    ++seen;
  }
  CHECK(seen == 3);
}

// A BatchNorm that learns in the test net too: each of its passes adds to the statistics.
caffe::SolverParameter learning_in_tests(const std::string& extra) {
  caffe::SolverParameter message = small_solver(extra);
  caffe::BatchNormParameter& norm = *normalize_data(message).mutable_batch_norm_param();
  norm.set_use_global_stats(false);
  norm.set_moving_average_fraction(1.0F);
  return message;
}

TEST_CASE("the last snapshot has the statistics from before the last test", "[solver]") {
  const Action action = GENERATE(Action::kContinue, Action::kSnapshot, Action::kSnapshotAndStop);
  CAPTURE(static_cast<int>(action));
  World world;
  Solver* running = nullptr;
  int asked = 0;
  std::vector<float> weights;  // of the statistics, in each snapshot
  Solver::Hooks hooks;
  hooks.poll = [&] {  // The third time is within the last test.
    return running->iteration() == 4 && ++asked == 3 ? action : Action::kContinue;
  };
  hooks.snapshot = [&](std::int64_t, const caffe::NetParameter& net, caffe::SolverState&) {
    for (const caffe::LayerParameter& layer : net.layer()) {
      if (layer.name() == "norm") weights.push_back(layer.blobs(2).data(0));
    }
    return Result<void>();
  };
  const auto solver = world.solver(
      learning_in_tests("max_iter: 4 test_iter: 5 test_interval: 4 test_initialization: false"),
      std::move(hooks));
  running = solver.get();
  REQUIRE(solver->solve());
  CHECK(asked >= 3);
  CHECK(weights == std::vector<float>{4.0F});
}

TEST_CASE("a state of another net is refused", "[solver]") {
  World world;
  Saved saved;
  Solver::Hooks hooks;
  hooks.snapshot = [&](std::int64_t, const caffe::NetParameter& model,
                       caffe::SolverState& state) -> Result<void> {
    saved = {model, state};
    return {};
  };
  REQUIRE(world.solver(small_solver("max_iter: 2"), std::move(hooks))->solve());
  saved.state.mutable_history()->RemoveLast();
  const Result<void> result = world.solver(small_solver())->restore(saved.state, saved.model);
  REQUIRE(!result);
  CHECK(result.error().code == ErrorCode::kMismatch);
}

TEST_CASE("solver fields that make no sense are refused by name", "[solver]") {
  World world;
  for (const char* field : {"display", "snapshot", "test_interval", "max_iter", "average_loss"}) {
    INFO(field);
    const caffe::SolverParameter message =
        small_solver("test_iter: 1 " + std::string(field) + ": -1");
    const auto made = Solver::create(message, world.options(), {});
    REQUIRE(!made);
    CHECK(made.error().code == ErrorCode::kConfig);
    CHECK(made.error().message.find(field) != std::string::npos);
  }
  const auto untested = world.solver(small_solver("max_iter: 2 test_interval: -1"));
  CHECK(untested->solve());
  CHECK(untested->iteration() == 2);
}

TEST_CASE("a mean of losses lies among them, though it is kept in float", "[solver]") {
  for (const std::size_t window : {1, 3}) {
    SmoothedLoss mean(window);
    CHECK(mean.value() == 0.0F);
    for (const float loss : {2.3F, 0.7F, 1.1e-3F, 5.1F, 0.3F, 0.1F}) mean.add(loss);
    CHECK(mean.value() >= 0.1F);
    for (int i = 0; i < 3; ++i) mean.add(0.0F);
    CHECK(mean.value() == 0.0F);
    mean.add(std::numeric_limits<float>::quiet_NaN());
    CHECK(std::isnan(mean.value()));
  }
}

}  // namespace
}  // namespace speedo
