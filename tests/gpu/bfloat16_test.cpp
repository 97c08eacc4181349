// Arrays of bfloat16: elementwise kernels on the host against the reference, which computes in
// float32 on the same rounded values. Operations that take layouts meet them in their own tests.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <speedo/base/bfloat16.hpp>

#include "gpu/agreement.hpp"
#include "gpu/elementwise/elementwise.hpp"
#include "support/catch.hpp"

namespace speedo::gpu {
namespace {

constexpr ElementType kHalf = ElementType::kBfloat16;

// So many elements one after the other.
ArrayShape line(std::int64_t n) { return {1, n, 1}; }
Layout halves(std::int64_t n) { return {std::max<std::int64_t>(n, 1), kHalf}; }

TEST_CASE("a float is rounded to the nearest bfloat16, a draw to the even one") {
  const auto rounded = [](float value) { return from_bfloat16(to_bfloat16(value)); };
  CHECK(rounded(1.0F) == 1.0F);
  CHECK(rounded(1.0F + 0x1p-8F) == 1.0F);
  CHECK(rounded(1.0F + 0x1.8p-7F) == 1.0F + 0x1p-6F);
  CHECK(rounded(1.0F + 0x1.2p-8F) == 1.0F + 0x1p-7F);
  CHECK(rounded(-3.0e38F) < -2.9e38F);
  CHECK(rounded(std::numeric_limits<float>::max()) == std::numeric_limits<float>::infinity());
  CHECK(rounded(std::numeric_limits<float>::infinity()) == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(rounded(std::numeric_limits<float>::quiet_NaN())));
  CHECK(std::isnan(rounded(std::numeric_limits<float>::signaling_NaN())));
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if (!std::isnan(from_bfloat16(half))) REQUIRE(to_bfloat16(from_bfloat16(half)) == half);
  }
}

TEST_CASE("functions of one element and their slopes agree on bfloat16") {
  const UnaryOp op = GENERATE(UnaryOp{UnaryKind::kRelu}, UnaryOp{UnaryKind::kRelu, 0.125F},
                              UnaryOp{UnaryKind::kSigmoid}, UnaryOp{UnaryKind::kElu, 0.5F},
                              affine(2.0F, 0.5F));
  const std::int64_t n = GENERATE(from_range(odd_counts()));
  CAPTURE(static_cast<int>(op.kind), n);
  const BackwardReads reads = backward_reads(op);
  require_agreement(0.0, [&](Trial& trial) {
    const float* x = trial.put_array(line(n), halves(n), drawn(n, -4, 4, 4));
    const float* y_grad = trial.put_array(line(n), halves(n), drawn(n, -2, 2, 5));
    float* y = trial.blank_array(line(n), halves(n));
    float* x_grad = trial.blank_array(line(n), halves(n));
    const float* read_x = reads.src ? x : nullptr;
    const float* read_y = reads.dst ? y : nullptr;
    trial.run(
        [&](Backend& backend) {
          backend.map(op, n, x, y);
          for (std::int64_t i = 0; i < n; ++i) y[i] = from_bfloat16(to_bfloat16(y[i]));
          backend.map_backward(op, n, read_x, read_y, y_grad, x_grad);
        },
        [&](Queue& queue) {
          map(queue, op, {n, kHalf}, x, y);
          map_backward(queue, op, {n, kHalf}, {read_x, read_y, y_grad, x_grad});
        });
    return joined(trial.get_array(line(n), halves(n), y),
                  trial.get_array(line(n), halves(n), x_grad));
  });
}

TEST_CASE("sums of two arrays of bfloat16 agree, in place too") {
  const std::int64_t n = GENERATE(from_range(odd_counts()));
  const float b = GENERATE(0.0F, 1.0F, -0.25F);
  CAPTURE(n, b);
  const BinaryOp op{BinaryKind::kSum, 0.5F, b, UnaryOp{UnaryKind::kRelu}};
  require_agreement(0.0, [&](Trial& trial) {
    const float* x = trial.put_array(line(n), halves(n), drawn(n, -4, 4, 4));
    float* z = trial.put_array(line(n), halves(n), drawn(n, -2, 2, 5));
    trial.run([&](Backend& backend) { backend.zip(op, n, {x, z, z}); },
              [&](Queue& queue) { zip(queue, op, {n, kHalf}, {x, z, z}); });
    return trial.get_array(line(n), halves(n), z);
  });
}

TEST_CASE("gradients of bfloat16 are added in float32, and rounded once") {
  const std::int64_t n = GENERATE(from_range(odd_counts()));
  const std::size_t count = GENERATE(std::size_t{2}, std::size_t{3}, std::size_t{4});
  const auto f = GENERATE(std::optional<UnaryOp>(), UnaryOp{UnaryKind::kRelu, 0.25F});
  CAPTURE(n, count, f.has_value());
  require_agreement(0.0, [&](Trial& trial) {
    const auto array = [&](std::size_t seed) {
      return trial.put_array(line(n), halves(n), drawn(n, -4, 4, seed));
    };
    float* x_grad = array(1);
    std::vector<const float*> gradients{x_grad};
    while (gradients.size() < count) gradients.push_back(array(gradients.size() + 1));
    const float* y = array(9);
    trial.run([&](Backend& backend) { backend.sum_gradients(f, n, gradients, y, x_grad); },
              [&](Queue& queue) { sum_gradients(queue, f, {n, kHalf}, gradients, {y, x_grad}); });
    return trial.get_array(line(n), halves(n), x_grad);
  });
}

TEST_CASE("arrays of bfloat16 are filled, copied and reduced") {
  const std::int64_t n = GENERATE(from_range(odd_counts()));
  CAPTURE(n);
  require_agreement(1e-12, [&](Trial& trial) {
    const float* x = trial.put_array(line(n), halves(n), drawn(n, -4, 4, 4));
    float* copied = trial.blank_array(line(n), halves(n));
    float* filled = trial.blank_array(line(n), halves(n));
    auto* const sum = trial.place<double>();
    auto* const finite = trial.place<double>();
    trial.run(
        [&](Backend& backend) {
          backend.copy(n, x, copied);
          backend.fill(n, 0.375F, filled);
          *sum = backend.sum_abs(n, x);
          *finite = backend.all_finite(n, filled) ? 1.0 : 0.0;
        },
        [&](Queue& queue) {
          copy(queue, {n, kHalf}, x, copied);
          fill(queue, {n, kHalf}, 0.375F, filled);
          reduce(queue, ReduceOp::kAbsSum, {n, kHalf}, x, nullptr, sum);
          reduce(queue, ReduceOp::kAllFinite, {n, kHalf}, filled, nullptr, finite);
        });
    const std::vector<float> numbers{static_cast<float>(trial.value(sum)),
                                     static_cast<float>(trial.value(finite))};
    return joined(joined(trial.get_array(line(n), halves(n), copied),
                         trial.get_array(line(n), halves(n), filled)),
                  numbers);
  });
}

TEST_CASE("masks of bfloat16 keep the elements that others keep") {
  const std::int64_t n = GENERATE(from_range(odd_counts()));
  CAPTURE(n);
  require_agreement(0.0, [&](Trial& trial) {
    float* mask = trial.blank_array(line(n), halves(n));
    const ChannelView view{line(n), halves(n)};
    trial.run([&](Backend& backend) { backend.dropout_mask(view, 0.4F, 7, mask); },
              [&](Queue& queue) { dropout_mask(queue, view, 0.4F, 7, mask); });
    return trial.get_array(line(n), halves(n), mask);
  });
}

TEST_CASE("rows of bfloat16 are put side by side") {
  const std::int64_t first = GENERATE(4, 3, 8), second = GENERATE(8, 5);
  CAPTURE(first, second);
  constexpr std::int64_t kRows = 7;
  const std::int64_t whole = first + second;
  require_agreement(0.0, [&](Trial& trial) {
    const auto array = [&](std::int64_t columns, std::uint64_t seed) {
      return trial.put_array(line(kRows * columns), halves(kRows * columns),
                             drawn(kRows * columns, -4, 4, seed));
    };
    const float* a = array(first, 1);
    const float* b = array(second, 2);
    float* to = trial.blank_array(line(kRows * whole), halves(kRows * whole));
    trial.run(
        [&](Backend& backend) {
          backend.copy_rows(kRows, first, a, first, to, whole);
          backend.copy_rows(kRows, second, b, second, to + first, whole);
        },
        [&](Queue& queue) {
          copy_rows(queue, kRows, {first, kHalf}, {a, first}, {to, whole});
          copy_rows(queue, kRows, {second, kHalf}, {b, second},
                    {element_at(to, first, kHalf), whole});
        });
    return trial.get_array(line(kRows * whole), halves(kRows * whole), to);
  });
}

}  // namespace
}  // namespace speedo::gpu
