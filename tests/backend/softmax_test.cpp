// Softmax and its loss, the CPU backend against the reference.

#include <cmath>
#include <limits>
#include <optional>

#include "backend/conformance.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"

namespace speedo {
namespace {

using SoftmaxShape = Backend::SoftmaxShape;

SoftmaxShape any_softmax() {
  return GENERATE(SoftmaxShape{1, 1, 1}, SoftmaxShape{3, 10, 1}, SoftmaxShape{64, 1000, 1},
                  SoftmaxShape{2, 5, 7}, SoftmaxShape{3, 4, 131}, SoftmaxShape{1, 21, 4096});
}

TEST_CASE("softmax agrees with the reference") {
  const SoftmaxShape shape = any_softmax();
  const std::int64_t count = shape.outer * shape.classes * shape.inner;
  CAPTURE(shape.outer, shape.classes, shape.inner);
  const float range = GENERATE(1.0F, 200.0F);  // the larger one reaches where exp() underflows
  const auto x = test_values(count, -range, range);
  for (const bool in_place : {false, true}) {
    require_conforming_vectors(1e-6, [&](Workbench& bench) {
      float* source = bench.put(x);
      float* y = in_place ? source : bench.blank(count);
      bench.backend().softmax_forward(shape, source, y);
      return bench.get(y, count);
    });
    // Where one class has all the probability, its gradient is a difference of nearly equal
    // numbers.
    if (range > 1.0F) continue;
    require_conforming_vectors(2e-6, [&](Workbench& bench) {
      float* y = bench.blank(count);
      float* y_grad = bench.put(test_values(count, -1, 1, 2));
      float* x_grad = in_place ? y_grad : bench.blank(count);
      bench.backend().softmax_forward(shape, bench.put(x), y);
      bench.backend().softmax_backward(shape, y, y_grad, x_grad);
      return bench.get(x_grad, count);
    });
  }
}

TEST_CASE("the softmax loss agrees with the reference") {
  const SoftmaxShape shape = any_softmax();
  const std::int64_t count = shape.outer * shape.classes * shape.inner;
  const std::int64_t label_count = shape.outer * shape.inner;
  const auto ignored = GENERATE(as<std::optional<int>>(), std::nullopt, 0);
  const auto scores = test_values(count, -100.0F, 100.0F);  // probabilities below FLT_MIN occur
  auto labels = test_values(label_count, 0.0F, static_cast<float>(shape.classes), 3);
  for (float& label : labels) label = std::floor(label);
  require_conforming_vectors(2e-6, [&](Workbench& bench) {
    float* probability = bench.blank(count);
    float* grad = bench.blank(count);
    const float* truth = bench.put(labels);
    bench.backend().softmax_forward(shape, bench.put(scores), probability);
    const auto loss = bench.backend().softmax_loss(shape, probability, truth, ignored);
    REQUIRE(loss.bad_index == -1);
    bench.backend().softmax_loss_backward(shape, probability, truth, ignored, 0.5F, grad);
    auto result = bench.get(grad, count);
    const auto labelled = static_cast<double>(label_count);
    result.push_back(static_cast<float>(loss.sum / labelled / 100.0));
    result.push_back(static_cast<float>(static_cast<double>(loss.valid) / labelled));
    return result;
  });
}

TEST_CASE("a label that is no class is reported with its place") {
  Workbench bench(test::make_backend(1));
  const float* probability = bench.put(std::vector<float>(30, 0.1F));
  for (const float bad : {10.0F, -1.0F, 1e30F, std::numeric_limits<float>::quiet_NaN()}) {
    const auto loss = bench.backend().softmax_loss({3, 10, 1}, probability,
                                                   bench.put({3.0F, bad, 1.0F}), std::nullopt);
    REQUIRE(loss.bad_index == 1);
    REQUIRE((loss.bad_label == bad || std::isnan(bad)));
  }
  const auto ignored =
      bench.backend().softmax_loss({3, 10, 1}, probability, bench.put({3.0F, -1.0F, 255.0F}), 255);
  REQUIRE(ignored.bad_index == 1);
}

TEST_CASE("no probability is above 1, and so no softmax loss below 0") {
  const SoftmaxShape shape = any_softmax();
  const std::int64_t count = shape.outer * shape.classes * shape.inner;
  const float range = GENERATE(1e-7F, 0.5F, 20.0F, 1e4F);
  Workbench bench(test::make_backend(1));
  float* probability = bench.blank(count);
  bench.backend().softmax_forward(shape, bench.put(test_values(count, -range, range)), probability);
  for (const float p : bench.get(probability, count)) REQUIRE(p <= 1.0F);
  const auto labels =
      bench.put(std::vector<float>(static_cast<std::size_t>(shape.outer * shape.inner), 0.0F));
  const auto loss = bench.backend().softmax_loss(shape, probability, labels, std::nullopt);
  REQUIRE(loss.sum >= 0.0);
}

TEST_CASE("a NaN score gives a NaN loss") {
  Workbench bench(test::make_backend(1));
  float* probability = bench.put({1.0F, std::numeric_limits<float>::quiet_NaN(), 2.0F});
  bench.backend().softmax_forward({1, 3, 1}, probability, probability);
  const auto loss =
      bench.backend().softmax_loss({1, 3, 1}, probability, bench.put({0.0F}), std::nullopt);
  REQUIRE(std::isnan(loss.sum));
}

}  // namespace
}  // namespace speedo
