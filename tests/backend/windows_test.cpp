// Operations on windows of images, the CPU backend against the reference.

#include <algorithm>

#include <speedo/base/random.hpp>

#include "backend/conformance.hpp"
#include "backend/convolution_shapes.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/random_seed.hpp"

namespace speedo {
namespace {

// 1 to 3 axes of odd sizes, with padding, strides and dilation.
ConvolutionShape drawn_shape(Random& random) {
  ConvolutionShape shape;
  shape.batch = static_cast<std::int64_t>(random.below(4));
  shape.channels = 1 + static_cast<std::int64_t>(random.below(3));
  const std::uint64_t axes = 1 + random.below(3);
  for (std::uint64_t i = 0; i < axes; ++i) {
    const auto draw = [&](std::uint64_t most) {
      return static_cast<std::int64_t>(random.below(most + 1));
    };
    const std::int64_t kernel = 1 + draw(3), dilation = 1 + draw(1), pad = draw(3);
    const std::int64_t extent = dilation * (kernel - 1) + 1;
    const std::int64_t size = std::max<std::int64_t>(1, extent - 2 * pad) + draw(6);
    const std::int64_t stride = 1 + draw(2);
    shape.kernel.push_back(kernel);
    shape.dilation.push_back(dilation);
    shape.pad.push_back(pad);
    shape.stride.push_back(stride);
    shape.src_size.push_back(size);
    shape.dst_size.push_back((size + 2 * pad - extent) / stride + 1);
  }
  return shape;
}

TEST_CASE("windows are unfolded and folded as the reference does") {
  Random random(test::varied(21));
  for (int i = 0; i < 40; ++i) {
    const ConvolutionShape shape = drawn_shape(random);
    CAPTURE(i, shape.batch, shape.channels, shape.src_size, shape.kernel, shape.pad, shape.stride,
            shape.dilation);
    const std::int64_t images = shape.batch * shape.channels;
    const std::int64_t src_count = images * product_of(shape.src_size);
    const std::int64_t count = images * product_of(shape.kernel) * product_of(shape.dst_size);
    const auto src = test_values(src_count), matrices = test_values(count, -1.0F, 1.0F, 2);
    require_conforming(0.0, [&](Workbench& bench) {
      float* unfolded = bench.blank(count);
      bench.backend().unfold(shape, bench.put(src), unfolded);
      return bench.get(unfolded, count);
    });
    require_conforming(1e-6, [&](Workbench& bench) {
      float* folded = bench.blank(src_count);
      const float* given = bench.put(matrices);
      bench.backend().fold(shape, given, folded);
      REQUIRE(bench.get(given, count) == matrices);
      return bench.get(folded, src_count);
    });
  }
}

PoolingShape pooled(std::int64_t batch, std::int64_t channels, std::int64_t height,
                    std::int64_t width, std::int64_t kernel, std::int64_t stride) {
  PoolingShape shape;
  shape.batch = batch, shape.channels = channels;
  shape.src_h = height, shape.src_w = width;
  shape.kernel_h = kernel, shape.kernel_w = kernel + 1;
  shape.stride_h = stride, shape.stride_w = stride + 1;
  // The last windows may overhang.
  shape.dst_h = (std::max<std::int64_t>(height - kernel, 0) + stride - 1) / stride + 1;
  shape.dst_w = (std::max<std::int64_t>(width - kernel - 1, 0) + stride) / (stride + 1) + 1;
  if ((shape.dst_h - 1) * shape.stride_h >= height) shape.dst_h -= 1;
  if ((shape.dst_w - 1) * shape.stride_w >= width) shape.dst_w -= 1;
  return shape;
}

TEST_CASE("stochastic pooling agrees with the reference") {
  const PoolingShape shape =
      GENERATE(pooled(1, 1, 1, 1, 1, 1), pooled(2, 3, 7, 5, 3, 2), pooled(1, 13, 28, 29, 3, 1),
               pooled(3, 5, 9, 11, 2, 3), pooled(1, 2, 4, 3, 6, 1), pooled(0, 2, 4, 4, 2, 2));
  const std::int64_t planes = shape.batch * shape.channels;
  const std::int64_t src_count = planes * shape.src_h * shape.src_w;
  const std::int64_t count = planes * shape.dst_h * shape.dst_w;
  CAPTURE(shape.src_h, shape.src_w, shape.dst_h, shape.dst_w);
  // Zeros among them, as of a ReLU before.
  auto src = test_values(src_count, -1.0F, 2.0F);
  for (float& value : src) value = std::max(0.0F, value);
  const auto dst_grad = test_values(count, -1.0F, 1.0F, 2);
  require_conforming(0.0, [&](Workbench& bench) {
    float* dst = bench.blank(count);
    float* winners = bench.blank(count);
    bench.backend().sample_windows(shape, 77, bench.put(src), dst, winners);
    return join(bench.get(dst, count), bench.get(winners, count));
  });
  require_conforming(1e-6, [&](Workbench& bench) {
    float* dst = bench.blank(count);
    float* winners = bench.blank(count);
    float* grad = bench.blank(src_count);
    bench.backend().sample_windows(shape, 78, bench.put(src), dst, winners);
    bench.backend().sample_windows_backward(shape, winners, bench.put(dst_grad), grad);
    return bench.get(grad, src_count);
  });
  for (float& value : src) value += 0.25F;
  require_conforming(1e-6, [&](Workbench& bench) {
    const float* source = bench.put(src);
    float* dst = bench.blank(count);
    float* grad = bench.blank(src_count);
    bench.backend().weigh_windows(shape, source, dst);
    bench.backend().weigh_windows_backward(shape, source, dst, bench.put(dst_grad), grad);
    return join(bench.get(dst, count), bench.get(grad, src_count));
  });
}

TEST_CASE("a window is drawn from by its values, and one of zeros gives zero") {
  constexpr std::int64_t kWindows = 20000;
  PoolingShape shape = pooled(kWindows, 1, 1, 4, 1, 3);
  shape.kernel_w = 4, shape.dst_w = 1;
  std::vector<float> src;
  for (std::int64_t i = 0; i < kWindows; ++i) src.insert(src.end(), {1.0F, 0.0F, 2.0F, 5.0F});
  Workbench bench(test::make_backend(2));
  float* dst = bench.blank(kWindows);
  float* winners = bench.blank(kWindows);
  bench.backend().sample_windows(shape, 5, bench.put(src), dst, winners);
  const auto drawn = bench.get(winners, kWindows);
  const auto share = [&](float place) {
    return static_cast<double>(std::count(drawn.begin(), drawn.end(), place)) / kWindows;
  };
  // Seven standard deviations.
  CHECK(share(0.0F) == Approx(1.0 / 8.0).margin(0.017));
  CHECK(share(1.0F) == 0.0);
  CHECK(share(2.0F) == Approx(2.0 / 8.0).margin(0.022));
  CHECK(share(3.0F) == Approx(5.0 / 8.0).margin(0.025));
  const float* nothing = bench.put(std::vector<float>(4 * kWindows, 0.0F));
  bench.backend().sample_windows(shape, 5, nothing, dst, winners);
  CHECK(bench.get(dst, kWindows) == std::vector<float>(kWindows, 0.0F));
  bench.backend().weigh_windows(shape, nothing, dst);
  CHECK(bench.get(dst, kWindows) == std::vector<float>(kWindows, 0.0F));
}

}  // namespace
}  // namespace speedo
