// Whole families of convolutions that have kernels of their own, the CPU backend against the
// reference: what a kernel does for one count of channels or samples says little about the next.

#include "backend/conformance.hpp"
#include "backend/convolution_shapes.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

constexpr double kTolerance = 3e-6;

// The results of all three passes.
std::vector<float> compute(Workbench& bench, const ConvolutionShape& shape) {
  const ArrayShape src{shape.batch, shape.channels, product_of(shape.src_size)};
  const ArrayShape dst{shape.batch, shape.outputs, product_of(shape.dst_size)};
  const std::int64_t taps = product_of(shape.kernel);
  const std::int64_t weight_count = shape.outputs * shape.channels * taps;
  auto made = bench.backend().make_convolution(shape);
  REQUIRE(made.has_value());
  const float* source = bench.put_array(src, shape.src_layout, test_values(src));
  const float* dst_grad = bench.put_array(dst, shape.dst_layout, test_values(dst, -1, 1, 4));
  float* weights = bench.put(test_values(weight_count, -1, 1, 2));
  float* bias = bench.put(test_values(shape.outputs, -1, 1, 3));
  float* output = bench.blank_array(dst, shape.dst_layout);
  float* src_grad = bench.blank_array(src, shape.src_layout);
  (*made)->forward(source, weights, bias, output);
  (*made)->backward_data(dst_grad, weights, src_grad);
  (*made)->backward_weights(source, dst_grad, weights, bias);
  const std::int64_t summed = shape.batch * dst.spatial;
  return join(
      join(over_root(shape.channels * taps, bench.get_array(dst, shape.dst_layout, output)),
           over_root(shape.outputs * taps, bench.get_array(src, shape.src_layout, src_grad))),
      over_root(summed, join(bench.get(weights, weight_count), bench.get(bias, shape.outputs))));
}

void require_conforming_family(const ConvolutionShape& given) {
  Expected expected;
  in_all_layouts(given, [&](const ConvolutionShape& shape, LayoutKind) {
    CAPTURE(shape.batch, shape.channels, shape.outputs, shape.src_size, shape.kernel, shape.stride,
            shape.src_layout.block, shape.dst_layout.block);
    const auto run = [&](Workbench& bench) { return compute(bench, shape); };
    require_conforming(kTolerance, run, expected);
  });
}

TEST_CASE("kernels of one element take every so many positions, whatever the channels") {
  const std::int64_t channels = GENERATE(1, 2, 3, 4, 5, 7, 8, 9, 17);
  const std::int64_t outputs = GENERATE(3, 8, 12);
  const std::int64_t batch = GENERATE(1, 3);
  for (const std::int64_t stride : {2, 3}) {
    require_conforming_family(
        convolution_shape(batch, channels, outputs, {6 * stride, 5 * stride}, {1, 1}, stride));
    require_conforming_family(
        convolution_shape(batch, channels, outputs, {31 * stride}, {1}, stride));
  }
  require_conforming_family(
      convolution_shape(batch, channels, outputs, {21, 20}, {1, 1}, 2));
}

TEST_CASE("kernels as large as the image, whatever the channels and samples") {
  const std::int64_t channels = GENERATE(1, 4, 16, 20);
  const std::int64_t outputs = GENERATE(4, 15, 33);
  const std::int64_t batch = GENERATE(1, 2, 5);
  for (const std::int64_t size : {4, 6, 7}) {
    require_conforming_family(
        convolution_shape(batch, channels, outputs, {size, size}, {size, size}, 1));
  }
  require_conforming_family(convolution_shape(batch, channels, outputs, {9, 5}, {9, 5}, 1));
  require_conforming_family(convolution_shape(batch, channels, outputs, {8}, {8}, 1));
  require_conforming_family(
      convolution_shape(batch, channels, outputs, {3, 4, 5}, {3, 4, 5}, 1));
}

TEST_CASE("windows as wide as the image, however high and whatever the step") {
  const std::int64_t width = GENERATE(13, 14, 18);
  const std::int64_t height = GENERATE(3, 16);
  const std::int64_t stride = GENERATE(1, 2);
  for (const std::int64_t channels : {4, 16}) {
    require_conforming_family(
        convolution_shape(2, channels, 16, {height + stride, width}, {height, width}, stride));
    require_conforming_family(
        convolution_shape(1, channels, 5, {height, width}, {height, width}, stride));
  }
  require_conforming_family(
      convolution_shape(2, 16, 16, {3, 16, width}, {2, 16, width}, stride));
}

TEST_CASE("samples that threads cannot share out evenly") {
  const std::int64_t batch = GENERATE(1, 2, 3, 4, 5, 7);
  const std::int64_t size = GENERATE(5, 8);
  for (const std::int64_t channels : {3, 16, 20}) {
    for (const std::int64_t outputs : {5, 32}) {
      require_conforming_family(
          convolution_shape(batch, channels, outputs, {size, size}, {3, 3}, 1));
      require_conforming_family(
          convolution_shape(batch, channels, outputs, {size, size}, {size, size}, 1));
    }
  }
}

TEST_CASE("weights that no cache holds, over few positions", "[cpu]") {
  require_conforming_family(convolution_shape(5, 256, 232, {4, 4}, {3, 3}, 1));
  ConvolutionShape up = convolution_shape(3, 272, 264, {6, 6}, {3, 3}, 1);
  up.transposed = true;
  std::swap(up.src_size, up.dst_size);
  require_conforming_family(up);
}

}  // namespace
}  // namespace speedo
