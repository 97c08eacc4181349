// Steps whose numbers stay on the device: against those that the host waits for, on the double.

#include <speedo/backend/device_steps.hpp>

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/agreement.hpp"
#include "support/catch.hpp"
#include "support/gpu/gpu_double.hpp"

namespace speedo::gpu {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A backend on the double with steps, whose calls are right at the end.
class StepsRig {
 public:
  explicit StepsRig(std::uint64_t seed = 0) : backend(test::make_gpu_double(log, {.seed = seed})) {
    auto made = backend->make_device_steps();
    REQUIRE(made.has_value());
    REQUIRE(*made != nullptr);
    steps = std::move(*made);
  }
  ~StepsRig() {
    buffers.clear();
    steps.reset();
    backend.reset();
    const auto violations = log->violations();
    CAPTURE(violations);
    CHECK(violations.empty());
  }
  StepsRig(const StepsRig&) = delete;
  StepsRig& operator=(const StepsRig&) = delete;

  float* put(const std::vector<float>& values) {
    auto buffer = backend->device().allocate(values.size() * sizeof(float));
    REQUIRE(buffer.has_value());
    float* const place = buffer->as_floats();
    backend->device().upload(place, values);
    buffers.push_back(std::move(*buffer));
    return place;
  }
  std::vector<float> get(const float* place, std::size_t count) {
    std::vector<float> values(count);
    backend->device().download(values, place);
    return values;
  }
  // A step of one pass with this loss and this gradient.
  void step(float loss, float gradient) {
    const DeviceSteps::Term term{1.0F, put({loss})};
    steps->add_terms({&term, 1});
    steps->end_step(1, put({gradient}), 1);
  }

  std::shared_ptr<test::CallLog> log = std::make_shared<test::CallLog>();
  std::unique_ptr<Backend> backend;
  std::unique_ptr<DeviceSteps> steps;
  std::vector<Buffer> buffers;
};

TEST_CASE("losses are noted as the host adds them up, and read once") {
  StepsRig rig;
  const std::vector<float> values{0.1F, 0.7F, 1.3F, 0.25F, 3.1F};
  const float* const there = rig.put(values);
  const DeviceSteps::Term first[] = {{0.5F, there}, {2.0F, there + 1}};
  const DeviceSteps::Term second[] = {{1.0F, there + 2}};
  const float* const gradients = rig.put({1.0F, 2.0F});
  rig.steps->add_terms(first);
  rig.steps->add_terms(second);
  rig.steps->next_pass();
  rig.steps->add_terms(second);
  rig.steps->end_step(2, gradients, 2);
  rig.steps->add_terms(second);
  rig.steps->end_step(2, gradients, 1);
  const auto node = [](double sum) { return static_cast<double>(static_cast<float>(sum)); };
  const double terms = node(0.5 * double{values[0]} + 2.0 * double{values[1]});
  float loss = 0.0F;
  loss += static_cast<float>(terms + double{values[2]});
  loss += values[2];
  CHECK(rig.steps->read() == std::vector<float>{loss / 2.0F, values[2]});
  CHECK(rig.steps->read().empty());
}

TEST_CASE("after a step that is not finite nothing changes that is guarded, until it was read") {
  const auto [loss, gradient] = GENERATE(table<float, float>(
      {{kNan, 1.0F}, {HUGE_VALF, 1.0F}, {1.0F, kNan}, {1.0F, -HUGE_VALF}}));
  StepsRig rig;
  float* const weights = rig.put({1.0F, 2.0F});
  float* const history = rig.put({0.5F, 0.5F});
  float* const second = rig.put({0.5F, 0.5F});
  float* const grad = rig.put({1.0F, 1.0F});
  float* const kept = rig.put({7.0F, 7.0F});
  const auto update = [&] {
    const SgdStep step{.rate = 1.0F, .momentum = 0.9F, .guard = rig.steps->guard()};
    rig.backend->sgd_step(2, step, weights, history, grad);
    const AdaptiveStep adam{AdaptiveKind::kAdam, step, 0.999F, 1e-8F};
    rig.backend->adaptive_step(2, adam, weights, {history, second}, grad);
    const DeviceSteps::Kept copies[] = {{2, weights, kept}};
    rig.steps->keep(copies);
  };
  rig.steps->set_rate(0.1F);
  rig.step(2.0F, 1.0F);
  update();
  const auto state = [&] {
    return joined(joined(rig.get(weights, 2), rig.get(history, 2)),
                  joined(rig.get(second, 2), rig.get(kept, 2)));
  };
  const std::vector<float> before = state();
  CHECK(before[0] != 1.0F);
  CHECK(before[6] == before[0]);
  rig.step(loss, gradient);
  update();
  rig.step(3.0F, 1.0F);
  update();
  CHECK(state() == before);
  const std::vector<float> losses = rig.steps->read();
  REQUIRE(losses.size() == 2);
  CHECK(losses[0] == 2.0F);
  CHECK_FALSE(std::isfinite(losses[1]));
  rig.step(4.0F, 1.0F);
  update();
  CHECK(state() != before);
  CHECK(rig.steps->read() == std::vector<float>{4.0F});
}

TEST_CASE("a guarded update has the device's rate times its own, to the bit") {
  const auto kind = GENERATE(std::optional<AdaptiveKind>(), AdaptiveKind::kAdaGrad,
                             AdaptiveKind::kAdaDelta, AdaptiveKind::kAdam);
  constexpr float kRate = 0.0371F, kMultiplier = 2.3F;
  constexpr std::int64_t kCount = 37;
  const auto run = [&](bool is_guarded) {
    StepsRig rig;
    float* const weights = rig.put(drawn(kCount));
    float* const first = rig.put(drawn(kCount, 0, 1, 2));
    float* const second = rig.put(drawn(kCount, 0, 1, 3));
    float* const grad = rig.put(drawn(kCount, -1, 1, 4));
    rig.steps->set_rate(kRate);
    SgdStep step{.rate = kRate * kMultiplier, .momentum = 0.9F, .scale = 0.5F, .l2 = 0.01F};
    if (is_guarded) {
      step.rate = kMultiplier;
      step.guard = rig.steps->guard();
    }
    if (kind) {
      rig.backend->adaptive_step(kCount, {*kind, step, 0.99F, 1e-6F}, weights, {first, second},
                                 grad);
    } else {
      rig.backend->sgd_step(kCount, step, weights, first, grad);
    }
    return joined(rig.get(weights, kCount), rig.get(first, kCount));
  };
  CHECK(run(true) == run(false));
}

TEST_CASE("losses that stay on the device, and their gradients, are those of the host") {
  const std::optional<int> ignored = GENERATE(std::optional<int>(), std::optional<int>(1));
  const std::optional<double> normalizer = GENERATE(std::optional<double>(), 6.0, 1.0);
  constexpr DeviceSteps::Rows kRows{3, 4, 2};
  constexpr std::int64_t kScores = 24, kLabels = 6;
  StepsRig rig;
  const float* const probability = rig.put(drawn(kScores, 0.01F, 1.0F));
  const float* const labels = rig.put({0.0F, 1.0F, 3.0F, 1.0F, 2.0F, 0.0F});
  float* const grad = rig.put(std::vector<float>(kScores));
  const QueuedLoss loss{.value = rig.put({0.0F}),
                        .sums = rig.put(std::vector<float>(QueuedLoss::kSumsFloats)),
                        .weight = rig.put({0.3F}),
                        .normalizer = normalizer};
  const auto scale = [&](std::int64_t valid) {
    const double count = normalizer.value_or(static_cast<double>(valid));
    return static_cast<float>(double{0.3F} / count);
  };
  const auto require_equal = [&](double sum, std::int64_t valid, auto&& backward) {
    const double count = normalizer.value_or(static_cast<double>(valid));
    CHECK(rig.get(loss.value, 1)[0] == static_cast<float>(sum / count));
    const std::vector<float> queued = rig.get(grad, kScores);
    backward(scale(valid));
    CHECK(rig.get(grad, kScores) == queued);
  };
  const Backend::SoftmaxShape shape{kRows.outer, kRows.classes, kRows.inner};
  rig.steps->softmax_loss(kRows, {probability, labels, ignored}, loss);
  rig.steps->softmax_loss_backward(kRows, {probability, labels, ignored}, loss, grad);
  const auto softmax = rig.backend->softmax_loss(shape, probability, labels, ignored);
  require_equal(softmax.sum, softmax.valid, [&](float by) {
    rig.backend->softmax_loss_backward(shape, probability, labels, ignored, by, grad);
  });

  const float* const targets = rig.put(drawn(kScores, 0, 1.9F, 5));
  rig.steps->sigmoid_loss(kLabels, {probability, targets, ignored}, loss);
  rig.steps->sigmoid_loss_backward(kLabels, {probability, targets, ignored}, loss, grad);
  const auto sigmoid = rig.backend->sigmoid_loss(kLabels, probability, targets, ignored);
  require_equal(sigmoid.sum, std::max<std::int64_t>(sigmoid.valid, 1), [&](float by) {
    rig.backend->sigmoid_loss_backward(kLabels, probability, targets, ignored, by, grad);
  });
}

TEST_CASE("a label that is no class makes the loss NaN") {
  StepsRig rig;
  const float* const probability = rig.put(drawn(8, 0.01F, 1.0F));
  const float* const labels = rig.put({0.0F, 5.0F});
  const QueuedLoss loss{.value = rig.put({0.0F}),
                        .sums = rig.put(std::vector<float>(QueuedLoss::kSumsFloats))};
  rig.steps->softmax_loss({2, 4, 1}, {probability, labels, std::nullopt}, loss);
  CHECK(std::isnan(rig.get(loss.value, 1)[0]));
}

TEST_CASE("squares that stay on the device are those of the host") {
  StepsRig rig;
  const std::vector<float> values = drawn(300);
  const float* const difference = rig.put(values);
  float* const grad = rig.put(std::vector<float>(300));
  const QueuedLoss loss{.value = rig.put({0.0F}),
                        .sums = rig.put(std::vector<float>(QueuedLoss::kSumsFloats)),
                        .normalizer = 14.0};
  rig.steps->square_loss(300, difference, loss);
  const double squares = rig.backend->reduce(ReduceOp::kSquareSum, 300, difference, nullptr);
  CHECK(rig.get(loss.value, 1)[0] == static_cast<float>(squares / 7.0 / 2.0));
  rig.steps->square_loss_backward(300, difference, {rig.put({0.7F}), 3.0F, true}, grad);
  const std::vector<float> queued = rig.get(grad, 300);
  rig.backend->map(affine(-(0.7F / 3.0F)), 300, difference, grad);
  CHECK(rig.get(grad, 300) == queued);
}

}  // namespace
}  // namespace speedo::gpu
