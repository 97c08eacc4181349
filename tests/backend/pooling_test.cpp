// Pooling in every layout, the CPU backend against the reference.

#include <cfloat>
#include <cmath>

#include "backend/conformance.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"

namespace speedo {
namespace {

using Method = PoolingShape::Method;

// Batch, channels, src, dst, kernel, stride, pad.
std::vector<PoolingShape> pooling_shapes() {
  const auto m = Method::kMax;
  return {
      {m, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, {}},
      {m, 2, 3, 7, 7, 3, 3, 3, 3, 2, 2, 0, 0, {}},
      {m, 1, 5, 8, 9, 4, 4, 3, 3, 2, 2, 0, 0, {}},  // overhangs
      {m, 1, 13, 28, 28, 28, 28, 3, 3, 1, 1, 1, 1, {}},
      {m, 1, 17, 14, 13, 14, 13, 5, 3, 1, 1, 2, 1, {}},
      {m, 3, 16, 56, 55, 28, 28, 2, 2, 2, 2, 0, 0, {}},
      {m, 2, 20, 6, 5, 4, 3, 2, 2, 2, 2, 1, 1, {}},
      {m, 1, 3, 23, 31, 6, 11, 7, 4, 4, 3, 3, 2, {}},
      {m, 2, 24, 9, 11, 3, 4, 2, 2, 3, 3, 0, 0, {}},  // gaps between windows
      {m, 1, 50, 7, 7, 1, 1, 7, 7, 1, 1, 0, 0, {}},   // global
      {m, 1, 3, 5, 40, 5, 39, 1, 2, 1, 1, 0, 0, {}},
      {m, 1, 2, 3, 3, 1, 1, 4, 4, 2, 2, 0, 0, {}},      // a kernel larger than the image
      {m, 2, 1, 40, 60, 38, 58, 3, 3, 1, 1, 0, 0, {}},  // several vectors at stride 1
      {m, 1, 2, 4, 3000, 2, 1499, 3, 3, 1, 2, 0, 0, {}},
      {m, 1, 3, 16, 17, 1, 1, 16, 17, 1, 1, 0, 0, {}},  // more elements than a byte tells apart
      {m, 1, 37, 18, 20, 3, 5, 16, 16, 1, 1, 0, 0, {}},
      // Strides that lead nowhere.
      {m, 1, 18, 7, 7, 1, 1, 7, 7, 1 << 30, 1 << 30, 0, 0, {}},
      {m, 2, 3, 3, 9, 1, 4, 3, 3, 1 << 30, 2, 1, 0, {}},
      // Windows far larger than the image.
      {m, 1, 3, 5, 4, 1, 1, 1 << 30, 1 << 30, 1 << 30, 1 << 30, 2, 0, {}},
      {m, 2, 17, 1, 6, 1, 1, 1 << 20, 9, 1 << 30, 9, 0, 3, {}},
  };
}

// Few different values make windows hold ties.
std::vector<float> source(const ArrayShape& shape, bool ties) {
  auto values = test_values(shape, -4.0F, 3.0F);
  if (ties) {
    for (float& value : values) value = std::trunc(value);
  }
  return values;
}

TEST_CASE("pooling agrees with the reference in every layout") {
  PoolingShape shape = GENERATE(from_range(pooling_shapes()));
  shape.method = GENERATE(Method::kMax, Method::kAverage);
  const ArrayShape src_shape{shape.batch, shape.channels, shape.src_h * shape.src_w};
  const ArrayShape dst_shape{shape.batch, shape.channels, shape.dst_h * shape.dst_w};
  const bool exact = shape.method == Method::kMax;
  const auto src = source(src_shape, GENERATE(false, true));
  const auto dst_grad = test_values(dst_shape, -1, 1, 2);
  for (const Layout layout : layouts_of(shape.channels)) {
    shape.layout = layout;
    CAPTURE(shape.channels, shape.src_h, shape.src_w, shape.kernel_h, shape.kernel_w,
            shape.stride_h, shape.stride_w, shape.pad_h, shape.pad_w, layout.block);
    for (const bool trains : {true, false}) {
      shape.trains = trains;
      require_conforming_vectors(exact ? 0.0 : 1e-6, [&](Workbench& bench) {
        auto pooling = bench.backend().make_pooling(shape);
        REQUIRE(pooling.has_value());
        float* dst = bench.blank_array(dst_shape, layout);
        (*pooling)->forward(bench.put_array(src_shape, layout, src), dst, nullptr);
        return bench.get_array(dst_shape, layout, dst);
      });
    }
    shape.trains = true;
    require_conforming_vectors(1e-6, [&](Workbench& bench) {
      auto pooling = bench.backend().make_pooling(shape);
      REQUIRE(pooling.has_value());
      float* src_grad = bench.blank_array(src_shape, layout);
      const float* from = bench.put_array(src_shape, layout, src);
      float* dst = bench.blank_array(dst_shape, layout);
      (*pooling)->forward(from, dst, nullptr);
      const BackwardReads reads = bench.backend().backward_reads(shape);
      (*pooling)->backward(reads.src ? from : nullptr, reads.dst ? dst : nullptr,
                           bench.put_array(dst_shape, layout, dst_grad), src_grad);
      return bench.get_array(src_shape, layout, src_grad);
    });
  }
}

TEST_CASE("the mask of a maximum pooling is the index in the plane") {
  PoolingShape shape = GENERATE(from_range(pooling_shapes()));
  shape.trains = GENERATE(false, true);
  const ArrayShape src_shape{shape.batch, shape.channels, shape.src_h * shape.src_w};
  const std::int64_t dst_count = shape.batch * shape.channels * shape.dst_h * shape.dst_w;
  const auto src = source(src_shape, true);
  require_conforming_vectors(0.0, [&](Workbench& bench) {
    auto pooling = bench.backend().make_pooling(shape);
    REQUIRE(pooling.has_value());
    float* mask = bench.blank(dst_count);
    (*pooling)->forward(bench.put(src), bench.blank(dst_count), mask);
    return bench.get(mask, dst_count);
  });
}

TEST_CASE("a window without any number has no maximum and no gradient") {
  for (const Layout layout : {Layout{1}, Layout{8}, Layout{16}, Layout{3}}) {
    PoolingShape shape{Method::kMax, 1, 3, 2, 2, 1, 1, 2, 2, 1, 1, 0, 0, {}};
    shape.layout = layout;
    const ArrayShape src{1, 3, 4}, dst{1, 3, 1};
    Workbench bench(test::make_backend(2));
    auto pooling = bench.backend().make_pooling(shape);
    REQUIRE(pooling.has_value());
    auto values = test_values(src);
    for (int i = 4; i < 8; ++i) values[static_cast<std::size_t>(i)] = std::nanf("");
    float* top = bench.blank_array(dst, layout);
    float* src_grad = bench.blank_array(src, layout);
    const float* from = bench.put_array(src, layout, values);
    (*pooling)->forward(from, top, nullptr);
    (*pooling)->backward(from, top, bench.put_array(dst, layout, {1.0F, 1.0F, 1.0F}), src_grad);
    REQUIRE(bench.get_array(dst, layout, top)[1] == -FLT_MAX);
    const auto gradient = bench.get_array(src, layout, src_grad);
    for (std::size_t i = 4; i < 8; ++i) REQUIRE(gradient[i] == 0.0F);
  }
}

TEST_CASE("an infinite number wins its windows, a NaN none") {
  Workbench bench(test::make_backend(1));
  const PoolingShape shape{Method::kMax, 1, 1, 1, 3, 1, 2, 1, 2, 1, 1, 0, 0, {}};
  auto pooling = bench.backend().make_pooling(shape);
  REQUIRE(pooling.has_value());
  float* dst = bench.blank(2);
  float* mask = bench.blank(2);
  (*pooling)->forward(bench.put({HUGE_VALF, std::nanf(""), -HUGE_VALF}), dst, mask);
  REQUIRE(bench.get(dst, 2) == std::vector<float>{HUGE_VALF, -FLT_MAX});
  REQUIRE(bench.get(mask, 2) == std::vector<float>{0.0F, -1.0F});
}

}  // namespace
}  // namespace speedo
