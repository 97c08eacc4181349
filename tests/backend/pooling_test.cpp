// Pooling and local response normalization, the CPU backend against the reference.

#include <cfloat>

#include "backend/conformance.hpp"
#include "cpu/cpu_backend.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

using Method = PoolingShape::Method;

// planes, src, dst, kernel, stride, pad.
std::vector<PoolingShape> shapes() {
  const auto m = Method::kMax;
  return {
      {m, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0},
      {m, 6, 7, 7, 3, 3, 3, 3, 2, 2, 0, 0},
      {m, 5, 8, 9, 4, 4, 3, 3, 2, 2, 0, 0},  // overhangs
      {m, 13, 28, 28, 28, 28, 3, 3, 1, 1, 1, 1},
      {m, 17, 14, 13, 14, 13, 5, 3, 1, 1, 2, 1},
      {m, 3, 56, 55, 28, 28, 2, 2, 2, 2, 0, 0},
      {m, 4, 6, 5, 4, 3, 2, 2, 2, 2, 1, 1},
      {m, 3, 23, 31, 6, 11, 7, 4, 4, 3, 3, 2},
      {m, 2, 9, 11, 3, 4, 2, 2, 3, 3, 0, 0},  // gaps between windows
      {m, 7, 7, 7, 1, 1, 7, 7, 1, 1, 0, 0},   // global
      {m, 3, 5, 40, 5, 39, 1, 2, 1, 1, 0, 0},
      {m, 2, 3, 3, 1, 1, 4, 4, 2, 2, 0, 0},      // a kernel larger than the image
      {m, 2, 40, 60, 38, 58, 3, 3, 1, 1, 0, 0},  // several blocks at stride 1
      {m, 2, 4, 3000, 2, 1499, 3, 3, 1, 2, 0, 0},
  };
}

TEST_CASE("pooling agrees with the reference") {
  PoolingShape shape = GENERATE(from_range(shapes()));
  shape.method = GENERATE(Method::kMax, Method::kAverage);
  const std::int64_t src_count = shape.planes * shape.src_h * shape.src_w;
  const std::int64_t dst_count = shape.planes * shape.dst_h * shape.dst_w;
  CAPTURE(shape.src_h, shape.src_w, shape.kernel_h, shape.kernel_w, shape.stride_h, shape.stride_w,
          shape.pad_h, shape.pad_w);
  // Few different values, so that windows hold ties.
  auto src = test_values(src_count, -4.0F, 3.0F);
  const bool ties = GENERATE(false, true);
  if (ties) {
    for (float& value : src) value = static_cast<float>(static_cast<int>(value));
  }
  const auto dst_grad = test_values(dst_count, -1, 1, 2);
  const bool exact = shape.method == Method::kMax;

  require_conforming(exact ? 0.0 : 5e-7, [&](Device& device) {
    auto pooling = device.backend().make_pooling(shape);
    REQUIRE(pooling.has_value());
    float* dst = device.blank(dst_count);
    (*pooling)->forward(device.put(src), dst, nullptr);
    return device.get(dst, dst_count);
  });
  require_conforming(1e-6, [&](Device& device) {
    auto pooling = device.backend().make_pooling(shape);
    REQUIRE(pooling.has_value());
    float* src_grad = device.blank(src_count);
    (*pooling)->forward(device.put(src), device.blank(dst_count), nullptr);
    (*pooling)->backward(device.put(dst_grad), src_grad);
    return device.get(src_grad, src_count);
  });
  if (!exact) return;
  require_conforming(0.0, [&](Device& device) {
    auto pooling = device.backend().make_pooling(shape);
    REQUIRE(pooling.has_value());
    float* mask = device.blank(dst_count);
    (*pooling)->forward(device.put(src), device.blank(dst_count), mask);
    return device.get(mask, dst_count);
  });
}

TEST_CASE("a window without any number has no maximum and no gradient") {
  Device device(make_cpu_backend(2));
  auto pooling = device.backend().make_pooling({Method::kMax, 1, 2, 2, 1, 1, 2, 2, 1, 1, 0, 0});
  REQUIRE(pooling.has_value());
  float* dst = device.blank(1);
  float* mask = device.blank(1);
  float* src_grad = device.blank(4);
  (*pooling)->forward(device.blank(4), dst, mask);
  (*pooling)->backward(device.put({1.0F}), src_grad);
  REQUIRE(device.get(dst, 1)[0] == -FLT_MAX);
  REQUIRE(device.get(mask, 1)[0] == -1.0F);
  REQUIRE(device.get(src_grad, 4) == std::vector<float>(4, 0.0F));
}

TEST_CASE("response normalization agrees with the reference") {
  const LrnShape shape = GENERATE(
      LrnShape{1, 1, 1, 5, 1.0F, 0.75F, 1.0F}, LrnShape{2, 7, 35, 3, 0.5F, 0.75F, 1.0F},
      LrnShape{3, 16, 129, 5, 1e-4F, 0.75F, 1.0F}, LrnShape{1, 5, 300, 7, 2.0F, 0.5F, 2.0F},
      LrnShape{2, 3, 64, 9, 1.0F, 1.3F, 0.5F}, LrnShape{5, 32, 49, 1, 1.0F, 0.75F, 1.0F});
  const std::int64_t count = shape.batch * shape.channels * shape.spatial;
  CAPTURE(shape.channels, shape.spatial, shape.size, shape.beta);
  const auto src = test_values(count, -3, 3, 1);
  require_conforming(5e-7, [&](Device& device) {
    auto lrn = device.backend().make_lrn(shape);
    REQUIRE(lrn.has_value());
    float* dst = device.blank(count);
    (*lrn)->forward(device.put(src), dst);
    return device.get(dst, count);
  });
  require_conforming(1e-6, [&](Device& device) {
    auto lrn = device.backend().make_lrn(shape);
    REQUIRE(lrn.has_value());
    const float* source = device.put(src);
    float* dst = device.blank(count);
    float* src_grad = device.blank(count);
    (*lrn)->forward(source, dst);
    (*lrn)->backward(source, dst, device.put(test_values(count, -1, 1, 2)), src_grad);
    return device.get(src_grad, count);
  });
}

TEST_CASE("normalization keeps its digits beside a channel that is a million times larger") {
  const LrnShape shape{1, 12, 40, 5, 1.0F, 0.75F, 1e-6F};
  auto src = test_values(12 * 40, 1e-3F, 2e-3F);
  for (std::size_t i = 0; i < 40; ++i) src[i] = 1000.0F;
  require_conforming(1e-5, [&](Device& device) {
    auto lrn = device.backend().make_lrn(shape);
    REQUIRE(lrn.has_value());
    float* dst = device.blank(12 * 40);
    (*lrn)->forward(device.put(src), dst);
    return device.get(dst + 3 * 40, 9 * 40);  // channels whose window excludes the large one
  });
}

}  // namespace
}  // namespace speedo
