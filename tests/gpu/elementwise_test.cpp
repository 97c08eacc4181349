// Vector operations: kernels on the host against the reference.

#include "gpu/elementwise/elementwise.hpp"

#include <cmath>
#include <limits>

#include "gpu/agreement.hpp"
#include "gpu/support/divisor.hpp"
#include "support/catch.hpp"

namespace speedo::gpu {
namespace {

TEST_CASE("a divisor divides as the processor does") {
  const std::vector<std::int64_t> values = {
      1, 2, 3, 5, 7, 8, 641, 65535, 65536, 1000003, 1 << 30, 2147483647, 2147483648, 1LL << 40};
  for (const std::int64_t value : values) {
    const Divisor divisor(value);
    for (const std::int64_t other : values) {
      for (const std::int64_t around : {-1, 0, 1}) {
        for (const std::int64_t index : {other + around, 3 * other + around, value * 3 + around}) {
          CAPTURE(value, index);
          REQUIRE(divisor.quotient(index) == index / value);
          REQUIRE(divisor.remainder(index) == index % value);
        }
      }
    }
  }
}

struct UnarySample {
  const char* name;
  UnaryOp op;
  float low = -4.0F, high = 4.0F;
};

std::vector<UnarySample> unary_samples() {
  return {
      {"abs", {UnaryKind::kAbs}},
      {"bnll", {UnaryKind::kBnll}},
      {"bnll, far", {UnaryKind::kBnll}, -100.0F, 100.0F},
      {"clip", {UnaryKind::kClip, -1.5F, 2.0F}},
      {"elu", {UnaryKind::kElu, 1.0F}},
      {"elu, near 0", {UnaryKind::kElu, 0.5F}, -1e-3F, 1e-3F},
      {"elu, turned", {UnaryKind::kElu, -0.5F}},
      {"exp", {UnaryKind::kExp, 1.25F, 0.5F}},
      {"log", {UnaryKind::kLog, 0.5F, 3.0F, 1.5F}},
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
      {"sigmoid, far", {UnaryKind::kSigmoid}, -100.0F, 100.0F},
      {"swish", {UnaryKind::kSwish, 1.5F}},
      {"tanh", {UnaryKind::kTanh}},
      {"tanh, near 0", {UnaryKind::kTanh}, -1e-3F, 1e-3F},
      {"threshold", {UnaryKind::kThreshold, 0.5F}},
  };
}

TEST_CASE("functions of one element and their slopes agree") {
  const UnarySample sample = GENERATE(from_range(unary_samples()));
  const std::int64_t n = GENERATE(from_range(odd_counts()));
  CAPTURE(sample.name, n);
  const auto x = drawn(n, sample.low, sample.high, 4);
  const auto grad = drawn(n, -2.0F, 2.0F, 5);
  const BackwardReads reads = backward_reads(sample.op);
  require_agreement(kTight, [&](Trial& trial) {
    const float* source = trial.put(x);
    float* y = trial.blank(n);
    float* in_place = trial.put(x);
    float* x_grad = trial.put(grad);
    const float* read_x = reads.src ? source : nullptr;
    const float* read_y = reads.dst ? y : nullptr;
    trial.run(
        [&](Backend& backend) {
          backend.map(sample.op, n, source, y);
          backend.map(sample.op, n, in_place, in_place);
          backend.map_backward(sample.op, n, read_x, read_y, x_grad, x_grad);
        },
        [&](Queue& queue) {
          map(queue, sample.op, n, source, y);
          map(queue, sample.op, n, in_place, in_place);
          map_backward(queue, sample.op, n, {read_x, read_y, x_grad, x_grad});
        });
    return joined(joined(trial.get(y, n), trial.get(in_place, n)), trial.get(x_grad, n));
  });
}

TEST_CASE("functions of zeros, infinities and NaN agree") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const UnarySample sample = GENERATE(from_range(unary_samples()));
  std::vector<float> x = {0.0F, -0.0F, kInfinity, -kInfinity, NAN};
  if (sample.op.kind == UnaryKind::kPower && std::floor(sample.op.c) != sample.op.c) x[3] = 1.0F;
  CAPTURE(sample.name);
  require_agreement(kTight, [&](Trial& trial) {
    float* y = trial.put(x);
    trial.run([&](Backend& backend) { backend.map(sample.op, 5, y, y); },
              [&](Queue& queue) { map(queue, sample.op, 5, y, y); });
    return trial.get(y, 5);
  });
}

TEST_CASE("gradients are added, through a function too, and in place of some") {
  const std::size_t count = GENERATE(std::size_t{1}, std::size_t{2}, std::size_t{3},
                                     std::size_t{4}, std::size_t{5}, std::size_t{9});
  const std::size_t in_place = GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{2},
                                        std::size_t{4}, std::size_t{5}, std::size_t{8});
  if (in_place > count) return;
  const auto f = GENERATE(std::optional<UnaryOp>(), UnaryOp{UnaryKind::kRelu},
                          UnaryOp{UnaryKind::kRelu, 0.25F}, UnaryOp{UnaryKind::kTanh});
  const std::int64_t n = GENERATE(from_range(odd_counts()));
  CAPTURE(count, in_place, f.has_value(), n);
  require_agreement(kTight, [&](Trial& trial) {
    const float* y = f ? trial.put(drawn(n, -1, 1, 50)) : nullptr;
    float* x_grad = in_place > 0 ? trial.put(drawn(n, -2, 2, 60)) : trial.blank(n);
    std::vector<const float*> gradients(in_place, x_grad);
    while (gradients.size() < count) {
      gradients.push_back(trial.put(drawn(n, -2, 2, gradients.size())));
    }
    trial.run([&](Backend& backend) { backend.sum_gradients(f, n, gradients, y, x_grad); },
              [&](Queue& queue) { sum_gradients(queue, f, n, gradients, {y, x_grad}); });
    return trial.get(x_grad, n);
  });
}

TEST_CASE("functions of two elements agree") {
  const auto kind = GENERATE(BinaryKind::kSum, BinaryKind::kProduct, BinaryKind::kQuotient,
                             BinaryKind::kMaximum, BinaryKind::kChosen);
  const float b = GENERATE(0.0F, 0.5F, -1.0F);
  const bool activated = GENERATE(false, true);
  const std::int64_t n = GENERATE(from_range(odd_counts()));
  CAPTURE(static_cast<int>(kind), b, activated, n);
  BinaryOp op{kind, 1.5F, b};
  if (activated) op.activation = UnaryOp{UnaryKind::kRelu, 0.25F};
  auto x = drawn(n, 0.5F, 2.0F, 1);
  for (std::size_t i = 0; i < x.size(); i += 3) x[i] = 1.5F;
  require_agreement(kTight, [&](Trial& trial) {
    float* z = trial.put(x);
    float* winners = kind == BinaryKind::kMaximum ? trial.put(drawn(n, 5, 6)) : nullptr;
    const bool reads_y = kind != BinaryKind::kSum || b != 0.0F;
    const ZipArrays arrays{z, reads_y ? trial.put(drawn(n, 0.5F, 2.0F, 2)) : nullptr, z, winners};
    trial.run([&](Backend& backend) { backend.zip(op, n, arrays); },
              [&](Queue& queue) { zip(queue, op, n, arrays); });
    auto values = trial.get(z, n);
    return winners == nullptr ? values : joined(values, trial.get(winners, n));
  });
}

TEST_CASE("sums agree, and see what is not finite") {
  const auto op = GENERATE(ReduceOp::kSum, ReduceOp::kAbsSum, ReduceOp::kSquareSum, ReduceOp::kDot,
                           ReduceOp::kAllFinite);
  const std::int64_t n = GENERATE(0, 1, 5, 4095, 4096, 4097, 100003);
  const bool spoiled = GENERATE(false, true);
  if (spoiled && op != ReduceOp::kAllFinite) return;
  CAPTURE(static_cast<int>(op), n, spoiled);
  auto x = drawn(n, -1.0F, 2.0F, 1);
  if (spoiled && n > 0) x.back() = n % 2 == 0 ? NAN : -std::numeric_limits<float>::infinity();
  require_agreement(kTight, [&](Trial& trial) {
    const float* first = trial.put(x);
    const float* second = op == ReduceOp::kDot ? trial.put(drawn(n, -1.0F, 2.0F, 2)) : nullptr;
    double* result = trial.place<double>();
    trial.run([&](Backend& backend) { *result = backend.reduce(op, n, first, second); },
              [&](Queue& queue) { reduce(queue, op, n, first, second, result); });
    return std::vector<float>{static_cast<float>(trial.value(result))};
  });
}

TEST_CASE("arrays are copied and filled, and rows between strides") {
  const std::int64_t n = GENERATE(from_range(odd_counts()));
  require_agreement(0.0, [&](Trial& trial) {
    const float* x = trial.put(drawn(n));
    float* y = trial.blank(n);
    float* z = trial.blank(n + 2);
    trial.run(
        [&](Backend& backend) {
          backend.copy(n, x, y);
          backend.fill(n, 2.5F, z);
        },
        [&](Queue& queue) {
          copy(queue, n, x, y);
          fill(queue, n, 2.5F, z);
        });
    return joined(trial.get(y, n), trial.get(z, n + 2));
  });
  const std::int64_t rows = GENERATE(0, 1, 3, 70), columns = GENERATE(1, 4, 12, 37);
  const std::int64_t gap = GENERATE(0, 3, 4);
  CAPTURE(rows, columns, gap);
  require_agreement(0.0, [&](Trial& trial) {
    const float* source = trial.put(drawn(rows * (columns + gap)));
    const std::int64_t stride = columns + 2 * gap;
    float* target = trial.blank(rows * stride);
    trial.run(
        [&](Backend& backend) {
          backend.copy_rows(rows, columns, source, columns + gap, target, stride);
        },
        [&](Queue& queue) {
          copy_rows(queue, rows, columns, {source, columns + gap}, {target, stride});
        });
    return trial.get(target, rows * stride);
  });
}

TEST_CASE("momentum SGD agrees") {
  const std::int64_t n = GENERATE(from_range(odd_counts()));
  const float l1 = GENERATE(0.0F, 0.01F);
  const bool steps = GENERATE(false, true);
  CAPTURE(n, l1, steps);
  const SgdStep step{0.1F, 0.9F, 0.5F, 5e-4F, l1, steps ? 1.0F : -1.0F};
  require_agreement(kTight, [&](Trial& trial) {
    auto values = drawn(n, -1, 1, 1);
    if (n > 1) values[1] = 0.0F;
    float* weights = trial.put(values);
    float* history = trial.put(drawn(n, -1, 1, 2));
    float* grad = trial.put(drawn(n, -1, 1, 3));
    trial.run(
        [&](Backend& backend) {
          if (steps) return backend.sgd_step(n, step, weights, history, grad);
          backend.sgd_update(n, step, weights, history, grad);
        },
        [&](Queue& queue) {
          const UpdateRange all[] = {{0, n, step.rate, step.l2, step.l1}};
          if (steps) return sgd_step(queue, all, step, weights, history, grad);
          sgd_update(queue, all, step, weights, history, grad);
        });
    return joined(joined(trial.get(weights, n), trial.get(history, n)), trial.get(grad, n));
  });
}

TEST_CASE("adaptive rules agree, whatever their histories are") {
  const auto kind = GENERATE(AdaptiveKind::kAdaGrad, AdaptiveKind::kRmsProp,
                             AdaptiveKind::kAdaDelta, AdaptiveKind::kAdam);
  const std::int64_t n = GENERATE(from_range(odd_counts()));
  const bool steps = GENERATE(false, true);
  const bool spoiled = GENERATE(false, true);
  CAPTURE(static_cast<int>(kind), n, steps, spoiled);
  const AdaptiveStep step{
      kind, {0.1F, 0.9F, 0.5F, 5e-4F, 0.01F, steps ? 1.0F : -1.0F}, 0.95F, 1e-6F};
  const bool has_second = kind == AdaptiveKind::kAdaDelta || kind == AdaptiveKind::kAdam;
  require_agreement(1e-9, [&](Trial& trial) {
    float* weights = trial.put(drawn(n, -1, 1, 1));
    auto squares = drawn(n, 0, 1, 2);
    if (spoiled && n > 2) squares[2] = -0.25F;
    float* first = trial.put(kind == AdaptiveKind::kAdam ? drawn(n, -1, 1, 4) : squares);
    float* second = has_second ? trial.put(squares) : nullptr;
    float* grad = trial.put(drawn(n, -1, 1, 3));
    trial.run(
        [&](Backend& backend) {
          if (steps) return backend.adaptive_step(n, step, weights, {first, second}, grad);
          backend.adaptive_update(n, step, weights, {first, second}, grad);
        },
        [&](Queue& queue) {
          const UpdateRange all[] = {{0, n, step.base.rate, step.base.l2, step.base.l1}};
          if (steps) return adaptive_step(queue, all, step, weights, {first, second}, grad);
          adaptive_update(queue, all, step, weights, {first, second}, grad);
        });
    auto values = joined(trial.get(weights, n), trial.get(grad, n));
    values = joined(values, trial.get(first, n));
    return has_second ? joined(values, trial.get(second, n)) : values;
  });
}

}  // namespace
}  // namespace speedo::gpu
