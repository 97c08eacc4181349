// Convolutions of many shapes and layouts, the CPU backend against the reference.

#include <algorithm>
#include <array>
#include <cmath>

#include <speedo/cpu/cpu_backend.hpp>

#include "backend/conformance.hpp"
#include "backend/convolution_shapes.hpp"
#include "cpu/isa.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/random_seed.hpp"
#include "support/reference/reference_layout.hpp"
#include "support/skip.hpp"

namespace speedo {
namespace {

ConvolutionShape make_shape(Sizes batch_channels_outputs_groups, Sizes src, Sizes kernel,
                            Sizes stride, Sizes pad, Sizes dilation) {
  ConvolutionShape shape = shape_without_output(std::move(batch_channels_outputs_groups),
                                                std::move(src), std::move(kernel),
                                                std::move(stride), std::move(pad),
                                                std::move(dilation));
  for (std::size_t i = 0; i < shape.kernel.size(); ++i) {
    const std::int64_t extent = shape.dilation[i] * (shape.kernel[i] - 1) + 1;
    shape.dst_size.push_back((shape.src_size[i] + 2 * shape.pad[i] - extent) / shape.stride[i] + 1);
  }
  return shape;
}

std::vector<ConvolutionShape> plain_shapes() {
  return {
      // Two axes: plain, padded to equal size, strided, rectangular, dilated, grouped, 1 x 1.
      make_shape({1, 1, 1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {1, 1}),
      make_shape({5, 3, 7, 1}, {11, 13}, {3, 3}, {1, 1}, {0, 0}, {1, 1}),
      make_shape({3, 4, 6, 2}, {17, 9}, {5, 5}, {1, 1}, {2, 2}, {1, 1}),
      make_shape({2, 3, 5, 1}, {23, 19}, {7, 5}, {2, 3}, {3, 1}, {1, 1}),
      make_shape({4, 6, 9, 3}, {13, 13}, {3, 2}, {1, 2}, {2, 0}, {2, 3}),
      make_shape({1, 3, 4, 1}, {31, 29}, {11, 11}, {4, 4}, {0, 0}, {1, 1}),
      make_shape({7, 5, 8, 1}, {6, 5}, {1, 1}, {1, 1}, {0, 0}, {1, 1}),
      make_shape({3, 5, 4, 1}, {7, 7}, {1, 1}, {2, 2}, {0, 0}, {1, 1}),
      make_shape({9, 2, 3, 1}, {3, 3}, {3, 3}, {1, 1}, {1, 1}, {1, 1}),
      make_shape({2, 2, 3, 1}, {4, 3}, {5, 5}, {1, 1}, {4, 4}, {1, 1}),
      make_shape({2, 1, 2, 1}, {2, 2}, {3, 3}, {2, 2}, {3, 3}, {1, 1}),
      make_shape({3, 4, 4, 4}, {8, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}),
      make_shape({1, 8, 16, 1}, {20, 20}, {3, 3}, {1, 1}, {1, 1}, {1, 1}),
      // Other counts of axes.
      make_shape({4, 3, 5, 1}, {}, {}, {}, {}, {}),
      make_shape({3, 4, 6, 2}, {17}, {3}, {2}, {1}, {2}),
      make_shape({2, 2, 3, 1}, {5, 6, 7}, {3, 2, 3}, {1, 2, 1}, {1, 0, 2}, {1, 1, 2}),
      make_shape({2, 2, 2, 1}, {3, 4, 3, 4}, {2, 2, 2, 2}, {1, 1, 2, 1}, {0, 1, 0, 1},
                 {1, 1, 1, 1}),
  };
}

// Shapes that have kernels of their own in some layout.
std::vector<ConvolutionShape> blocked_shapes() {
  return {
      make_shape({3, 16, 32, 1}, {9, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}),
      make_shape({5, 32, 16, 1}, {11, 11}, {5, 5}, {1, 1}, {2, 2}, {1, 1}),
      make_shape({2, 48, 32, 1}, {6, 6}, {1, 1}, {1, 1}, {0, 0}, {1, 1}),
      make_shape({3, 32, 64, 1}, {7, 7}, {1, 1}, {2, 2}, {0, 0}, {1, 1}),
      make_shape({2, 16, 16, 1}, {13, 11}, {3, 3}, {2, 2}, {1, 1}, {1, 1}),
      make_shape({2, 16, 32, 1}, {12, 12}, {3, 3}, {1, 1}, {2, 2}, {2, 2}),
      make_shape({1, 64, 16, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {1, 1}),
      make_shape({1, 16, 16, 1}, {1, 1}, {3, 3}, {1, 1}, {1, 1}, {1, 1}),
      // Windows that do not reach the end of the image.
      make_shape({2, 16, 16, 1}, {10, 12}, {3, 3}, {3, 4}, {0, 0}, {1, 1}),
      // Channels that blocks do not divide.
      make_shape({3, 20, 50, 1}, {8, 8}, {5, 5}, {1, 1}, {0, 0}, {1, 1}),
      make_shape({4, 17, 23, 1}, {7, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}),
      make_shape({2, 24, 40, 1}, {6, 6}, {1, 1}, {1, 1}, {0, 0}, {1, 1}),
      make_shape({2, 5, 3, 1}, {6, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}),
      // The same with strides, windows in the padding, more positions than are held at once.
      make_shape({3, 9, 18, 1}, {13, 10}, {5, 4}, {2, 3}, {2, 1}, {1, 1}),
      make_shape({2, 5, 34, 1}, {3, 2}, {3, 3}, {1, 1}, {3, 4}, {1, 1}),
      make_shape({1, 6, 19, 1}, {19, 23}, {5, 5}, {1, 1}, {2, 2}, {1, 1}),
      // First layers.
      make_shape({4, 1, 20, 1}, {12, 12}, {5, 5}, {1, 1}, {0, 0}, {1, 1}),
      make_shape({3, 1, 50, 1}, {31, 17}, {3, 2}, {2, 3}, {0, 0}, {1, 1}),
      make_shape({5, 1, 7, 1}, {30, 29}, {4, 3}, {1, 1}, {0, 0}, {1, 1}),
      make_shape({3, 3, 32, 1}, {16, 16}, {5, 5}, {1, 1}, {2, 2}, {1, 1}),
      make_shape({2, 3, 48, 1}, {23, 23}, {11, 11}, {4, 4}, {0, 0}, {1, 1}),
      make_shape({2, 3, 24, 1}, {20, 20}, {7, 7}, {2, 2}, {3, 3}, {1, 1}),
      // Groups: of whole blocks, of cut ones, of one channel.
      make_shape({2, 32, 64, 2}, {9, 9}, {5, 5}, {1, 1}, {2, 2}, {1, 1}),
      make_shape({2, 24, 12, 3}, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}),
      make_shape({2, 32, 32, 32}, {9, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}),
      make_shape({2, 6, 10, 2}, {5, 5}, {3, 3}, {1, 1}, {0, 0}, {1, 1}),
      // Other counts of axes.
      make_shape({3, 16, 32, 1}, {17}, {3}, {2}, {1}, {1}),
      make_shape({2, 16, 16, 1}, {5, 6, 7}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}),
      make_shape({2, 6, 4, 1}, {}, {}, {}, {}, {}),
  };
}

// Enough tiles and channels for Winograd's method with up to three threads; tiles that overhang.
std::vector<ConvolutionShape> winograd_shapes() {
  return {make_shape({13, 32, 32, 1}, {14, 15}, {3, 3}, {1, 1}, {1, 1}, {1, 1}),
          make_shape({12, 32, 48, 1}, {17, 17}, {3, 3}, {1, 1}, {0, 0}, {1, 1})};
}

// A convolution's arrays, filled, in the layouts of its shape.
struct Arrays {
  explicit Arrays(const ConvolutionShape& shape)
      : src_array{shape.batch, shape.channels, product_of(shape.src_size)},
        dst_array{shape.batch, shape.outputs, product_of(shape.dst_size)},
        src_count(src_array.storage_count(shape.src_layout)),
        dst_count(dst_array.storage_count(shape.dst_layout)),
        weight_count(shape.outputs * shape.channels / shape.groups * product_of(shape.kernel)),
        src(laid_out(src_array, shape.src_layout, 1)),
        dst_grad(laid_out(dst_array, shape.dst_layout, 4)),
        weights(test_values(weight_count, -1, 1, 2)),
        bias(test_values(shape.outputs, -1, 1, 3)) {}

  static std::vector<float> laid_out(const ArrayShape& array, Layout layout, std::uint64_t seed) {
    const auto plain = test_values(array.storage_count(Layout{}), -1, 1, seed);
    std::vector<float> values(static_cast<std::size_t>(array.storage_count(layout)));
    write_plain(array, layout, plain.data(), values.data());
    return values;
  }

  ArrayShape src_array, dst_array;
  std::int64_t src_count, dst_count, weight_count;
  std::vector<float> src, dst_grad, weights, bias;
};

void require_forward(double tolerance, const ConvolutionShape& shape, const Arrays& arrays) {
  for (const bool with_bias : {true, false}) {
    require_conforming(tolerance, [&](Workbench& bench) {
      float* dst = bench.blank(arrays.dst_count);
      auto made = bench.backend().make_convolution(shape);
      REQUIRE(made.has_value());
      (*made)->forward(bench.put(arrays.src), bench.put(arrays.weights),
                       with_bias ? bench.put(arrays.bias) : nullptr, dst);
      return bench.get(dst, arrays.dst_count);
    });
  }
}

void require_backward(double tolerance, const ConvolutionShape& shape, const Arrays& arrays) {
  const auto make = [&](Workbench& bench) {
    auto made = bench.backend().make_convolution(shape);
    REQUIRE(made.has_value());
    return std::move(*made);
  };
  require_conforming(tolerance, [&](Workbench& bench) {
    float* src_grad = bench.blank(arrays.src_count);
    make(bench)->backward_data(bench.put(arrays.dst_grad), bench.put(arrays.weights), src_grad);
    return bench.get(src_grad, arrays.src_count);
  });
  // Gradients of parameters are added to what is there.
  for (const bool with_weights : {true, false}) {
    for (const bool with_bias : {true, false}) {
      require_conforming(2 * tolerance, [&](Workbench& bench) {
        float* weights_grad = bench.put(arrays.weights);
        float* bias_grad = bench.put(arrays.bias);
        make(bench)->backward_weights(bench.put(arrays.src), bench.put(arrays.dst_grad),
                                      with_weights ? weights_grad : nullptr,
                                      with_bias ? bias_grad : nullptr);
        auto values = bench.get(weights_grad, arrays.weight_count);
        const auto more = bench.get(bias_grad, shape.outputs);
        values.insert(values.end(), more.begin(), more.end());
        return values;
      });
    }
  }
}

void require_all(double tolerance, const ConvolutionShape& shape) {
  CAPTURE(shape.batch, shape.channels, shape.outputs, shape.groups, shape.src_size, shape.kernel,
          shape.stride, shape.pad, shape.dilation, shape.src_layout.block, shape.dst_layout.block);
  const Arrays arrays(shape);
  require_forward(tolerance, shape, arrays);
  require_backward(tolerance, shape, arrays);
}

TEST_CASE("convolutions agree with the reference") {
  require_all(1e-6, GENERATE(from_range(plain_shapes())));
}

TEST_CASE("convolutions agree with the reference in every layout") {
  ConvolutionShape shape = GENERATE(from_range(blocked_shapes()));
  const auto kind = GENERATE(LayoutKind::kPlain, LayoutKind::kBlocked8, LayoutKind::kBlocked16,
                             LayoutKind::kChannelsLast);
  const bool plain_src = GENERATE(false, true);
  shape.src_layout = plain_src ? Layout{} : layout_of(kind, shape.channels);
  shape.dst_layout = layout_of(kind, shape.outputs);
  require_all(1e-6, shape);
}

TEST_CASE("a fused activation is applied before the output is stored") {
  ConvolutionShape shape = GENERATE(from_range(blocked_shapes()));
  shape.activation = GENERATE(UnaryOp{UnaryKind::kRelu, 0.0F}, UnaryOp{UnaryKind::kRelu, 0.125F},
                              UnaryOp{UnaryKind::kElu, 0.5F}, UnaryOp{UnaryKind::kSwish, 1.0F});
  const auto kind = GENERATE(LayoutKind::kPlain, LayoutKind::kBlocked16, LayoutKind::kChannelsLast);
  shape.src_layout = layout_of(kind, shape.channels);
  shape.dst_layout = layout_of(kind, shape.outputs);
  CAPTURE(shape.channels, shape.outputs, shape.kernel, shape.dst_layout.block);
  require_forward(1e-6, shape, Arrays(shape));
}

// Where a fused product ends in cuBLASLt's ReLU, which says nothing about NaN.
bool is_product_on_gpu(const ConvolutionShape& shape) {
  const bool is_gpu = test::kernel_choice().gpu || test::kernel_choice().gpu_double;
  return is_gpu && product_of(shape.kernel) == 1;
}

TEST_CASE("a fused ReLU of NaN is NaN") {
  auto shapes = blocked_shapes();
  for (const ConvolutionShape& each : winograd_shapes()) shapes.push_back(each);
  ConvolutionShape shape = GENERATE_COPY(from_range(shapes));
  if (is_product_on_gpu(shape)) return;
  shape.activation = UnaryOp{UnaryKind::kRelu, GENERATE(0.0F, 0.125F)};
  const auto kind = GENERATE(LayoutKind::kPlain, LayoutKind::kBlocked16, LayoutKind::kChannelsLast);
  shape.src_layout = layout_of(kind, shape.channels);
  shape.dst_layout = layout_of(kind, shape.outputs);
  CAPTURE(shape.channels, shape.outputs, shape.kernel, shape.dst_layout.block);
  Arrays arrays(shape);
  arrays.bias.front() = NAN;
  require_conforming(0.0, [&](Workbench& bench) {
    float* dst = bench.blank(arrays.dst_count);
    auto made = bench.backend().make_convolution(shape);
    REQUIRE(made.has_value());
    (*made)->forward(bench.put(arrays.src), bench.put(arrays.weights), bench.put(arrays.bias), dst);
    std::vector<float> is_nan;
    for (const float value : bench.get(dst, arrays.dst_count)) is_nan.push_back(std::isnan(value));
    return is_nan;
  });
}

TEST_CASE("Winograd's method stays within half the golden tolerance") {
  ConvolutionShape shape = GENERATE(from_range(winograd_shapes()));
  shape.src_layout = shape.dst_layout = Layout{16};
  require_all(5e-6, shape);
}

// Values of 7 binary digits, which bfloat16 holds exactly: only sums are rounded then.
std::vector<float> short_values(std::vector<float> values) {
  for (float& value : values) value = std::round(value * 64.0F) / 64.0F;
  return values;
}

// What the passes give: output, gradients by the data, by the weights and by the bias.
std::array<std::vector<float>, 4> three_passes(const ConvolutionShape& shape, const Arrays& arrays,
                                               const CpuOptions& options) {
  auto backend = make_cpu_backend(options);
  REQUIRE(backend.has_value());
  Workbench bench(std::move(*backend));
  auto made = bench.backend().make_convolution(shape);
  REQUIRE(made.has_value());
  float* dst = bench.blank(arrays.dst_count);
  float* src_grad = bench.blank(arrays.src_count);
  const float* src = bench.put(arrays.src);
  const float* dst_grad = bench.put(arrays.dst_grad);
  float* weights = bench.put(arrays.weights);
  float* bias = bench.put(arrays.bias);
  (*made)->forward(src, weights, bias, dst);
  (*made)->backward_data(dst_grad, weights, src_grad);
  (*made)->backward_weights(src, dst_grad, weights, bias);
  return {bench.get(dst, arrays.dst_count), bench.get(src_grad, arrays.src_count),
          bench.get(weights, arrays.weight_count), bench.get(bias, shape.outputs)};
}

// The largest difference, as a part of the largest value.
double largest_error(const std::vector<float>& expected, const std::vector<float>& got) {
  double magnitude = 0.0, worst = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    magnitude = std::max(magnitude, std::fabs(double{expected[i]}));
    worst = std::max(worst, std::fabs(double{expected[i]} - got[i]));
  }
  return worst / magnitude;
}

TEST_CASE("bfloat16 rounds operands, not sums") {
  if (!cpu::has_bfloat16()) SPEEDO_SKIP("no bfloat16 kernels here");
  ConvolutionShape shape = GENERATE(from_range(blocked_shapes()));
  const auto kind = GENERATE(LayoutKind::kPlain, LayoutKind::kBlocked16, LayoutKind::kChannelsLast);
  shape.src_layout = layout_of(kind, shape.channels);
  shape.dst_layout = layout_of(kind, shape.outputs);
  CAPTURE(shape.channels, shape.outputs, shape.kernel, shape.dst_layout.block);
  Arrays arrays(shape);
  arrays.src = short_values(arrays.src);
  arrays.dst_grad = short_values(arrays.dst_grad);
  arrays.weights = short_values(arrays.weights);
  const auto expected = three_passes(shape, arrays, {.threads = 2});
  const auto got =
      three_passes(shape, arrays, {.threads = 2, .precision = CpuPrecision::kBfloat16});
  for (std::size_t i = 0; i < got.size(); ++i) {
    REQUIRE(largest_error(expected[i], got[i]) <= test::tolerated(2e-6));
  }
}

TEST_CASE("bfloat16 is used in all three passes of a blocked convolution") {
  if (!cpu::has_bfloat16()) SPEEDO_SKIP("no bfloat16 kernels here");
  ConvolutionShape shape = make_shape({3, 16, 32, 1}, {9, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1});
  shape.src_layout = shape.dst_layout = Layout{16};
  const Arrays arrays(shape);
  const auto expected = three_passes(shape, arrays, {.threads = 2});
  const auto got =
      three_passes(shape, arrays, {.threads = 2, .precision = CpuPrecision::kBfloat16});
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    const double error = largest_error(expected[i], got[i]);
    CHECK(error > 1e-5);
    CHECK(error < 1e-2);  // operands have 8 binary digits
  }
}

// Fewer samples than threads, alone and with several parts of the batch; few of Winograd's tiles.
std::vector<ConvolutionShape> shapes_of_few_samples() {
  return {make_shape({1, 128, 192, 1}, {6, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}),
          make_shape({2, 192, 128, 1}, {5, 7}, {1, 1}, {1, 1}, {0, 0}, {1, 1}),
          make_shape({12, 128, 192, 1}, {7, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}),
          make_shape({13, 192, 128, 1}, {8, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}),
          make_shape({1, 100, 136, 1}, {5, 5}, {3, 3}, {2, 2}, {1, 1}, {1, 1})};
}

TEST_CASE("threads divide channels where there are few samples", "[cpu]") {
  ConvolutionShape shape = GENERATE(from_range(shapes_of_few_samples()));
  const auto kind = GENERATE(LayoutKind::kBlocked8, LayoutKind::kBlocked16,
                             LayoutKind::kChannelsLast);
  const int threads = GENERATE(2, 3, 4, 6);
  shape.src_layout = layout_of(kind, shape.channels);
  shape.dst_layout = layout_of(kind, shape.outputs);
  CAPTURE(shape.batch, shape.channels, shape.outputs, shape.dst_layout.block, threads);
  const Arrays arrays(shape);
  const auto expected = three_passes(shape, arrays, {.threads = 1});
  const auto got = three_passes(shape, arrays, {.threads = threads});
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    REQUIRE(largest_error(expected[i], got[i]) <= test::tolerated(5e-6));
  }
  REQUIRE(three_passes(shape, arrays, {.threads = threads}) == got);
}

TEST_CASE("the same thread count gives the same bits") {
  ConvolutionShape shape = GENERATE(from_range(blocked_shapes()));
  const auto kind = GENERATE(LayoutKind::kPlain, LayoutKind::kBlocked16, LayoutKind::kChannelsLast);
  shape.src_layout = layout_of(kind, shape.channels);
  shape.dst_layout = layout_of(kind, shape.outputs);
  const Arrays arrays(shape);
  const auto train = [&](int threads) {
    Workbench bench(test::make_backend(threads));
    auto made = bench.backend().make_convolution(shape);
    REQUIRE(made.has_value());
    float* dst = bench.blank(arrays.dst_count);
    float* weights = bench.put(arrays.weights);
    float* bias = bench.put(arrays.bias);
    for (int step = 0; step < 3; ++step) {
      (*made)->forward(bench.put(arrays.src), weights, bias, dst);
      (*made)->backward_weights(bench.put(arrays.src), dst, weights, bias);
    }
    return bench.get(weights, arrays.weight_count);
  };
  for (const int threads : thread_counts()) REQUIRE(train(threads) == train(threads));
}

TEST_CASE("operations of one backend share scratch memory without harm") {
  const auto small = make_shape({2, 1, 2, 1}, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1});
  const auto large = make_shape({2, 3, 8, 1}, {21, 21}, {5, 5}, {1, 1}, {2, 2}, {1, 1});
  require_conforming(1e-6, [&](Workbench& bench) {
    auto first = bench.backend().make_convolution(small);
    const std::int64_t before = bench.backend().scratch_bytes();
    auto second = bench.backend().make_convolution(large);  // grows the scratch of the first
    REQUIRE(first.has_value());
    REQUIRE(second.has_value());
    REQUIRE(bench.backend().scratch_bytes() >= before);
    float* dst = bench.blank(2 * 2 * 25);
    float* other = bench.blank(2 * 8 * 441);
    const float* src = bench.put(test_values(2 * 3 * 441, -1, 1, 1));
    const float* weights = bench.put(test_values(8 * 3 * 25, -1, 1, 2));
    (*second)->forward(src, weights, nullptr, other);
    (*first)->forward(src, weights, nullptr, dst);
    return bench.get(dst, 2 * 2 * 25);
  });
}

TEST_CASE("a convolution says what it is made of") {
  auto shape = make_shape({2, 16, 32, 1}, {10, 10}, {3, 3}, {1, 1}, {1, 1}, {1, 1});
  Workbench bench(test::make_backend(1));
  const auto made = bench.backend().make_convolution(shape);
  REQUIRE(made.has_value());
  const OperationInfo info = (*made)->info();
  REQUIRE(info.forward_flops == 2.0 * 2 * 32 * 100 * 16 * 9);
  REQUIRE(info.backward_flops == 2.0 * info.forward_flops);
  REQUIRE(!info.kernel.empty());
}

TEST_CASE("channels that fill vectors badly have kernels of their own", "[cpu]") {
  auto shape = make_shape({2, 5, 34, 1}, {9, 9}, {5, 5}, {1, 1}, {0, 0}, {1, 1});
  shape.src_layout = layout_of(LayoutKind::kChannelsLast, shape.channels);
  shape.dst_layout = layout_of(LayoutKind::kChannelsLast, shape.outputs);
  Workbench bench(test::make_backend(1));
  const auto made = bench.backend().make_convolution(shape);
  REQUIRE(made.has_value());
  REQUIRE((*made)->info().kernel.find("cpu narrow") != std::string::npos);
}

}  // namespace
}  // namespace speedo
