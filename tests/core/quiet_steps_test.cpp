// Iterations whose losses stay on the device, on the GPU's double: what they leave is what others
// leave, which wait for each loss, as those do that are displayed.

#include "core/solver/quiet_steps.hpp"

#include <cmath>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/kept_values.hpp"
#include "core/solver/dynamic_loss_scale.hpp"
#include "core/solver_support.hpp"
#include "support/gpu/gpu_double.hpp"

namespace speedo {
namespace {

struct Trained {
  std::vector<float> losses, weights, state;
  std::int64_t iteration = 0;
  std::string error;
  int quiet_steps = 0;  // that were queued, or recorded
  int graphs = 0;       // that were launched
  std::vector<std::string> violations;
};

void train_in(test::World& world, const caffe::SolverParameter& message, std::int64_t steps,
              Trained& trained) {
  Solver::Hooks hooks;
  hooks.progress = [&](std::int64_t iteration, float loss) {
    trained.losses.push_back(loss);
    CHECK(iteration == std::ssize(trained.losses));
  };
  hooks.snapshot = [&](std::int64_t, const caffe::NetParameter&, caffe::SolverState& state) {
    for (const caffe::BlobProto& blob : state.history()) {
      trained.state.insert(trained.state.end(), blob.data().begin(), blob.data().end());
    }
    return Result<void>();
  };
  const auto solver = world.solver(message, std::move(hooks));
  const Result<void> done = solver->step(steps);
  if (!done) trained.error = done.error().message;
  trained.weights = test::weights_of(*solver);
  trained.iteration = solver->iteration();
}

// The double's kernels are those of the host, in an order that the seed draws.
constexpr std::uint64_t kHalf = 1000;  // no seed: with products in float16
Trained train(const caffe::SolverParameter& message, std::uint64_t seed, std::int64_t steps) {
  const auto log = std::make_shared<test::CallLog>();
  Trained trained;
  {
    test::World world;
    world.backend = seed == kHalf ? test::make_gpu_double(log, {}, gpu::Arithmetic::kFloat16)
                                  : test::make_gpu_double(log, {.seed = seed});
    train_in(world, message, steps, trained);
  }
  trained.quiet_steps = log->kernels("note_step");
  trained.graphs = log->graphs();
  trained.violations = log->violations();
  return trained;
}

bool are_equal(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && !(std::isnan(a[i]) && std::isnan(b[i]))) return false;
  }
  return true;
}

// What is expected of a training: quiet iterations, some of them replayed.
enum class Expected { kLoud, kQuiet, kReplayed };

// Displayed, an iteration is as it is without any QuietSteps.
void require_equal(const caffe::SolverParameter& message, std::int64_t steps, Expected what,
                   bool is_half = false) {
  caffe::SolverParameter loud = message;
  loud.set_display(1);
  const Trained expected = train(loud, is_half ? kHalf : 0, steps);
  REQUIRE(expected.quiet_steps == 0);
  const std::uint64_t seed = is_half ? kHalf : what == Expected::kQuiet ? 0 : 3;
  const Trained quiet = train(message, seed, steps);
  CAPTURE(quiet.error, expected.error, quiet.losses, expected.losses, quiet.violations);
  REQUIRE(quiet.violations.empty());
  REQUIRE((quiet.quiet_steps > 0) == (what != Expected::kLoud));
  REQUIRE((quiet.graphs > 1) == (what == Expected::kReplayed));
  REQUIRE(are_equal(quiet.losses, expected.losses));
  REQUIRE(are_equal(quiet.weights, expected.weights));
  REQUIRE(are_equal(quiet.state, expected.state));
  REQUIRE(quiet.iteration == expected.iteration);
  REQUIRE(quiet.error == expected.error);
}

TEST_CASE("quiet iterations leave what others leave, to the bit", "[solver]") {
  const auto [fields, what] = GENERATE(table<std::string, Expected>({
      {"", Expected::kReplayed},
      {"display: 4 average_loss: 3", Expected::kReplayed},
      {"lr_policy: 'inv' gamma: 0.01 power: 0.75 regularization_type: 'L1'", Expected::kReplayed},
      {"lr_policy: 'multistep' gamma: 0.5 stepvalue: 3 stepvalue: 5", Expected::kReplayed},
      {"iter_size: 2", Expected::kQuiet},
      {"type: 'Adam' momentum2: 0.999", Expected::kReplayed},
      {"type: 'RMSProp' momentum: 0 rms_decay: 0.9", Expected::kReplayed},
      {"type: 'Nesterov'", Expected::kLoud},
      {"clip_gradients: 0.1", Expected::kLoud},
      {"snapshot: 3", Expected::kReplayed},
  }));
  CAPTURE(fields);
  require_equal(test::small_solver(fields), 6, what);
}

TEST_CASE("a loss that is not finite changes nothing, and those behind it are repeated",
          "[solver]") {
  const std::string source = GENERATE("broken", "broken once");
  const std::string fields = GENERATE("type: 'Adam' momentum2: 0.999", "display: 3");
  CAPTURE(source, fields);
  require_equal(test::small_solver(fields, source), 7, Expected::kReplayed);
}

constexpr const char* kNormNet =
    "layer { name: 'data' type: 'Data' top: 'data' top: 'label' "
    "data_param { source: 'SOURCE' batch_size: 8 } }\n"
    "layer { name: 'ip1' type: 'InnerProduct' bottom: 'data' top: 'ip1' inner_product_param { "
    "num_output: 6 weight_filler { type: 'xavier' } } }\n"
    "layer { name: 'bn' type: 'BatchNorm' bottom: 'ip1' top: 'bn' }\n"
    "layer { name: 'sig' type: 'Sigmoid' bottom: 'bn' top: 'sig' }\n"
    "layer { name: 'ip2' type: 'InnerProduct' bottom: 'sig' top: 'ip2' inner_product_param { "
    "num_output: 12 weight_filler { type: 'xavier' } } }\n"
    "layer { name: 'ip3' type: 'InnerProduct' bottom: 'sig' top: 'ip3' inner_product_param { "
    "num_output: 3 weight_filler { type: 'xavier' } } }\n"
    "layer { name: 'cross' type: 'SigmoidCrossEntropyLoss' bottom: 'ip2' bottom: 'data' "
    "top: 'cross' loss_weight: 0.5 }\n"
    "layer { name: 'square' type: 'EuclideanLoss' bottom: 'ip2' bottom: 'data' top: 'square' "
    "loss_weight: 0.25 }\n"
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip3' bottom: 'label' top: 'loss' "
    "loss_param { LOSS } }\n"
    "layer { name: 'far' type: 'Power' bottom: 'label' top: 'far' power_param { scale: 1 } }\n"
    "layer { name: 'watched' type: 'SoftmaxWithLoss' bottom: 'ip3' bottom: 'far' top: 'watched' "
    "loss_weight: 0 }\n"
    "layer { name: 'seen' type: 'SigmoidCrossEntropyLoss' bottom: 'ip2' bottom: 'data' top: 'seen' "
    "loss_weight: 0 }\n";

caffe::SolverParameter norm_solver(const std::string& source, const std::string& loss) {
  std::string text = kNormNet;
  text.replace(text.find("SOURCE"), 6, source);
  text.replace(text.find("LOSS }"), 4, loss);
  return test::parse_solver(test::kSolverText + "net_param { " + text + " }");
}

TEST_CASE("statistics and every loss that can stay on the device are the same", "[solver]") {
  const std::string source = "broken once";
  const std::string loss = GENERATE("", "ignore_label: 1", "normalization: NONE");
  CAPTURE(loss);
  require_equal(norm_solver(source, loss), 7, Expected::kReplayed);
}

TEST_CASE("a label that cannot be ends a quiet iteration, too, where its loss has no weight",
          "[solver]") {
  caffe::SolverParameter message = norm_solver("generated", "");
  for (caffe::LayerParameter& layer : *message.mutable_net_param()->mutable_layer()) {
    if (layer.name() == "far") layer.mutable_power_param()->set_scale(100);
  }
  require_equal(message, 4, Expected::kReplayed);
  CHECK(train(message, 0, 4).error.find("watched") != std::string::npos);
}

TEST_CASE("statistics that are read and not changed stay on the device", "[solver]") {
  caffe::SolverParameter message = norm_solver("generated", "");
  for (caffe::LayerParameter& layer : *message.mutable_net_param()->mutable_layer()) {
    if (layer.type() == "BatchNorm") layer.mutable_batch_norm_param()->set_use_global_stats(true);
  }
  require_equal(message, 6, Expected::kReplayed);
}

TEST_CASE("what is kept of a net stays on its device, guarded or not", "[solver]") {
  const auto log = std::make_shared<test::CallLog>();
  test::World world;
  world.backend = test::make_gpu_double(log);
  const auto solver = world.solver(norm_solver("generated", ""));
  Net& net = solver->net();
  REQUIRE(net.forward());
  const std::vector<float> first = test::weights_of(*solver);
  KeptValues kept(net, KeptValues::Kind::kStatistics);
  int before = log->downloads();
  kept.keep();
  CHECK(log->downloads() == before);
  REQUIRE(net.forward());
  const std::vector<float> second = test::weights_of(*solver);
  REQUIRE(second != first);
  net.clear_gradients();
  net.backward();
  before = log->downloads();
  kept.put_change_into_gradients();
  kept.restore();
  CHECK(log->downloads() == before);
  CHECK(test::weights_of(*solver) == first);
  const Arena& gradients = net.gradients();
  const std::vector<float> lost =
      test::values_at(net.backend().device(), gradients.data(), gradients.size());
  for (const ParameterSlot& slot : net.layout().slots()) {
    if (!slot.is_statistic) continue;
    for (auto i = static_cast<std::size_t>(slot.offset);
         i < static_cast<std::size_t>(slot.offset + slot.count()); ++i) {
      CHECK(lost[i] == first[i] - second[i]);
    }
  }
}

// The gradient by the scores is up to 1000 / 8 a sample, and the first scale 65536.
caffe::SolverParameter steep_solver() {
  caffe::SolverParameter message = test::small_solver("base_lr: 0.0001");
  for (caffe::LayerParameter& layer : *message.mutable_net_param()->mutable_layer()) {
    if (layer.type() == "SoftmaxWithLoss") layer.add_loss_weight(1000.0F);
  }
  return message;
}

TEST_CASE("gradients beyond float16 are dropped, and the losses scaled less, until they fit",
          "[solver]") {
  const caffe::SolverParameter message = steep_solver();
  const std::vector<float> first = train(message, kHalf, 0).weights;
  CHECK(train(message, kHalf, 5).weights == first);
  const Trained trained = train(message, kHalf, 10);
  CHECK(trained.weights != first);
  CHECK(trained.error.empty());
  for (const float loss : trained.losses) CHECK(std::isfinite(loss));
  require_equal(message, 10, Expected::kReplayed, true);
}

TEST_CASE("debug_info leaves float16's gradients and their scale as they are without it",
          "[solver]") {
  const bool overflows = GENERATE(false, true);
  CAPTURE(overflows);
  caffe::SolverParameter plain = overflows ? steep_solver() : test::small_solver();
  plain.set_display(1);
  caffe::SolverParameter debug = plain;
  debug.set_debug_info(true);
  const Trained expected = train(plain, kHalf, 10);
  const Trained trained = train(debug, kHalf, 10);
  CHECK(trained.error.empty());
  CHECK(are_equal(trained.losses, expected.losses));
  CHECK(trained.weights == expected.weights);
}

TEST_CASE("a loss scale is halved by what overflows and doubled by many that do not", "[solver]") {
  DynamicLossScale scale;
  CHECK(scale.value() == DynamicLossScale::kFirst);
  CHECK(scale.overflow());
  CHECK(scale.value() == DynamicLossScale::kFirst / 2.0F);
  for (std::int64_t i = 1; i < DynamicLossScale::kGrowsAfter; ++i) scale.succeed();
  CHECK(scale.until_growth() == 1);
  CHECK(scale.value() == DynamicLossScale::kFirst / 2.0F);
  scale.succeed();
  CHECK(scale.value() == DynamicLossScale::kFirst);
  CHECK(scale.until_growth() == DynamicLossScale::kGrowsAfter);
  while (scale.value() > 1.0F) REQUIRE(scale.overflow());
  CHECK_FALSE(scale.overflow());
  CHECK(scale.value() == 1.0F);
  for (std::int64_t i = 0; i < 40 * DynamicLossScale::kGrowsAfter; ++i) scale.succeed();
  CHECK(scale.value() == DynamicLossScale::kMost);
}

TEST_CASE("a label that is no class ends a quiet training with the words of others", "[solver]") {
  caffe::SolverParameter message = test::small_solver();
  auto& layers = *message.mutable_net_param()->mutable_layer();
  for (caffe::LayerParameter& layer : layers) {
    if (layer.name() == "ip2") layer.mutable_inner_product_param()->set_num_output(2);
  }
  const Trained quiet = train(message, 0, 5);
  CHECK(quiet.error.find("label") != std::string::npos);
  CHECK(quiet.weights == train(message, 0, 0).weights);
}

TEST_CASE("someone who stops a training, or asks for its state, finds it settled", "[solver]") {
  using Action = Solver::Hooks::Action;
  const Action action = GENERATE(Action::kStop, Action::kSnapshot, Action::kSnapshotAndStop);
  test::World world;
  world.backend = test::make_gpu_double(std::make_shared<test::CallLog>());
  std::int64_t seen = 0, polls = 0, written = -1;
  Solver::Hooks hooks;
  hooks.progress = [&](std::int64_t iteration, float) { seen = iteration; };
  hooks.poll = [&] { return ++polls == 5 ? action : Action::kContinue; };
  hooks.snapshot = [&](std::int64_t iteration, const caffe::NetParameter&, caffe::SolverState&) {
    written = iteration;
    CHECK(seen == iteration);
    return Result<void>();
  };
  const auto solver = world.solver(test::small_solver(), std::move(hooks));
  REQUIRE(solver->step(8));
  const bool goes_on = action == Action::kSnapshot;
  CHECK(solver->iteration() == (goes_on ? 8 : 5));
  CHECK(seen == solver->iteration());
  CHECK(written == (action == Action::kStop ? -1 : 5));
}

}  // namespace
}  // namespace speedo
