// Losses that need no softmax, the CPU backend against the reference.

#include <cmath>
#include <limits>
#include <optional>

#include "backend/conformance.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"

namespace speedo {
namespace {

using HingeShape = Backend::HingeShape;

TEST_CASE("the hinge loss agrees with the reference") {
  HingeShape shape =
      GENERATE(HingeShape{1, 1, false}, HingeShape{3, 10, false}, HingeShape{64, 1000, false},
               HingeShape{17, 3, false}, HingeShape{5, 131, false}, HingeShape{301, 37, false});
  shape.squares = GENERATE(false, true);
  CAPTURE(shape.rows, shape.classes, shape.squares);
  const std::int64_t count = shape.rows * shape.classes;
  const auto scores = test_values(count, -3.0F, 3.0F);
  auto labels = test_values(shape.rows, 0.0F, static_cast<float>(shape.classes), 3);
  for (float& label : labels) label = std::floor(label);
  require_conforming_vectors(1e-6, [&](Workbench& bench) {
    const float* x = bench.put(scores);
    const float* truth = bench.put(labels);
    float* grad = bench.blank(count);
    const auto loss = bench.backend().hinge_loss(shape, x, truth);
    REQUIRE(loss.bad_index == -1);
    REQUIRE(loss.valid == shape.rows);
    bench.backend().hinge_loss_backward(shape, x, truth, 0.5F, grad);
    auto result = bench.get(grad, count);
    result.push_back(static_cast<float>(loss.sum / static_cast<double>(count)));
    return result;
  });
}

TEST_CASE("a label that is no class of a hinge loss is reported with its place") {
  Workbench bench(test::make_backend(1));
  const float* scores = bench.put(std::vector<float>(30, 0.1F));
  for (const float bad : {10.0F, -1.0F, 1e30F, std::numeric_limits<float>::quiet_NaN()}) {
    const auto loss =
        bench.backend().hinge_loss({3, 10, false}, scores, bench.put({3.0F, bad, 1.0F}));
    REQUIRE(loss.bad_index == 1);
    REQUIRE((loss.bad_label == bad || std::isnan(bad)));
  }
}

TEST_CASE("a large score of the label's class leaves the other margins as they are") {
  Workbench bench(test::make_backend(1));
  const auto loss = bench.backend().hinge_loss(
      {1, 4, false}, bench.put({0.5F, 1e30F, -0.25F, -3.0F}), bench.put({1.0F}));
  REQUIRE(loss.sum == Approx(1.5 + 0.75));
}

TEST_CASE("the cross-entropy of sigmoids agrees with the reference") {
  const auto count = GENERATE(as<std::int64_t>(), 1, 7, 255, 257, 8192, 8193, 100003);
  const float range = GENERATE(1.0F, 30.0F, 2000.0F);
  const auto ignored = GENERATE(as<std::optional<int>>(), std::nullopt, 0, 1, -1);
  CAPTURE(count, range, ignored.value_or(99));
  const auto x = test_values(count, -range, range);
  const bool is_soft = GENERATE(false, true);
  auto target = test_values(count, is_soft ? 0.0F : -1.0F, is_soft ? 1.0F : 2.0F, 2);
  for (float& t : target) t = is_soft ? t : std::floor(t);
  require_conforming_vectors(1e-6, [&](Workbench& bench) {
    const float* scores = bench.put(x);
    const float* wanted = bench.put(target);
    float* grad = bench.blank(count);
    const auto loss = bench.backend().sigmoid_loss(count, scores, wanted, ignored);
    bench.backend().sigmoid_loss_backward(count, scores, wanted, ignored, 0.5F, grad);
    auto result = bench.get(grad, count);
    const auto all = static_cast<double>(count);
    result.push_back(static_cast<float>(loss.sum / all / double{range}));
    result.push_back(static_cast<float>(static_cast<double>(loss.valid) / all));
    return result;
  });
}

// log(1 + e^-30) is lost beside 30: what is small must not be a difference of what is large.
TEST_CASE("scores that are right by far lose little, and exactly so") {
  Workbench bench(test::make_backend(1));
  const auto loss = bench.backend().sigmoid_loss(2, bench.put({30.0F, -30.0F}),
                                                 bench.put({1.0F, 0.0F}), std::nullopt);
  REQUIRE(loss.sum == Approx(2.0 * std::exp(-30.0)).epsilon(1e-5));
}

TEST_CASE("a NaN score gives a NaN cross-entropy of sigmoids") {
  Workbench bench(test::make_backend(1));
  const float* x = bench.put({1.0F, std::numeric_limits<float>::quiet_NaN(), 2.0F});
  const auto loss = bench.backend().sigmoid_loss(3, x, bench.put({1, 0, 1}), std::nullopt);
  REQUIRE(std::isnan(loss.sum));
}

}  // namespace
}  // namespace speedo
