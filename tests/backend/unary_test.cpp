#include <cmath>
#include <limits>
#include <vector>

#include <speedo/backend/unary_op.hpp>

#include "backend/conformance.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

struct Sample {
  const char* name;
  UnaryOp op;
  float low = -4.0F, high = 4.0F;  // of the values
};

const std::vector<Sample>& samples() {
  static const std::vector<Sample> all = {
      {"abs", {UnaryKind::kAbs}},
      {"bnll", {UnaryKind::kBnll}},
      {"bnll, far", {UnaryKind::kBnll}, -100.0F, 100.0F},
      {"clip", {UnaryKind::kClip, -1.5F, 2.0F}},
      {"elu", {UnaryKind::kElu, 1.0F}},
      {"elu, near 0", {UnaryKind::kElu, 0.5F}, -1e-3F, 1e-3F},
      {"elu, far", {UnaryKind::kElu, 0.5F}, -200.0F, 200.0F},
      {"elu, turned", {UnaryKind::kElu, -0.5F}},
      {"exp", {UnaryKind::kExp, 1.25F, 0.5F}},
      {"log", {UnaryKind::kLog, 0.5F, 3.0F, 1.5F}},
      {"log, tiny", {UnaryKind::kLog, 1.0F, 0.0F, 1.0F}, 1e-40F, 1e-30F},
      {"power, affine", {UnaryKind::kPower, -1.5F, 0.25F, 1.0F}},
      {"power, constant", {UnaryKind::kPower, 0.0F, 3.0F, 2.0F}},
      {"power, zeroth", {UnaryKind::kPower, 2.0F, 3.0F, 0.0F}},
      {"power, square", {UnaryKind::kPower, 0.5F, 0.0F, 2.0F}},
      {"power, cube", {UnaryKind::kPower, 0.5F, 1.0F, 3.0F}},
      {"power, root", {UnaryKind::kPower, 0.5F, 5.0F, 0.5F}},
      {"power, any", {UnaryKind::kPower, 0.5F, 5.0F, 1.7F}},
      {"power, inverse", {UnaryKind::kPower, 0.5F, 5.0F, -1.0F}},
      {"relu", {UnaryKind::kRelu, 0.0F}},
      {"relu, leaky", {UnaryKind::kRelu, 0.1F}},
      {"relu, turned", {UnaryKind::kRelu, -0.1F}},
      {"sigmoid", {UnaryKind::kSigmoid}},
      {"sigmoid, near 0", {UnaryKind::kSigmoid}, -1e-3F, 1e-3F},
      {"sigmoid, far", {UnaryKind::kSigmoid}, -100.0F, 100.0F},
      {"swish", {UnaryKind::kSwish, 1.5F}},
      {"tanh", {UnaryKind::kTanh}},
      {"tanh, near 0", {UnaryKind::kTanh}, -1e-3F, 1e-3F},
      {"tanh, far", {UnaryKind::kTanh}, -100.0F, 100.0F},
      {"threshold", {UnaryKind::kThreshold, 0.5F}},
  };
  return all;
}

TEST_CASE("functions of one element and their slopes") {
  const Sample sample = GENERATE(from_range(samples()));
  const std::int64_t n = GENERATE(1, 7, 16, 33, 4099);
  CAPTURE(sample.name, n);
  const auto x = test_values(n, sample.low, sample.high, 4);
  const auto grad = test_values(n, -2.0F, 2.0F, 5);
  const BackwardReads reads = backward_reads(sample.op);
  require_conforming_vectors(2e-6, [&](Workbench& bench) {
    const float* source = bench.put(x);
    float* y = bench.blank(n);
    bench.backend().map(sample.op, n, source, y);
    float* in_place = bench.put(x);
    bench.backend().map(sample.op, n, in_place, in_place);
    return join(bench.get(y, n), bench.get(in_place, n));
  });
  require_conforming_vectors(4e-6, [&](Workbench& bench) {
    const float* source = bench.put(x);
    float* y = bench.blank(n);
    bench.backend().map(sample.op, n, source, y);
    float* x_grad = bench.put(grad);  // in place, as nets use it
    bench.backend().map_backward(sample.op, n, reads.src ? source : nullptr,
                                 reads.dst ? y : nullptr, x_grad, x_grad);
    return bench.get(x_grad, n);
  });
}

// What cannot be compared by difference, as numbers that can.
float marked(float value) {
  if (std::isnan(value)) return 100.0F;
  if (std::isinf(value)) return value > 0.0F ? 200.0F : -200.0F;
  return value;
}

TEST_CASE("functions of zeros, infinities and NaN") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = {0.0F, -0.0F, kInfinity, -kInfinity, NAN};
  const Sample sample = GENERATE(from_range(samples()));
  // Of minus infinity, std::pow() makes an exception.
  if (sample.op.kind == UnaryKind::kPower && std::floor(sample.op.c) != sample.op.c) x[3] = 1.0F;
  CAPTURE(sample.name);
  require_conforming_vectors(1e-6, [&](Workbench& bench) {
    float* y = bench.put(x);
    bench.backend().map(sample.op, 5, y, y);
    auto results = bench.get(y, 5);
    if (keeps_zero(sample.op)) CHECK(results[0] == 0.0F);
    for (float& result : results) result = marked(result);
    return results;
  });
}

}  // namespace
}  // namespace speedo
