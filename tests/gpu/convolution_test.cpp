// Convolutions by cuDNN: what it is told against the reference backend, choices, memory.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <speedo/base/random.hpp>

#include "backend/convolution_shapes.hpp"
#include "gpu/convolution/convolution.hpp"
#include "gpu/library_bench.hpp"
#include "support/catch.hpp"
#include "support/gpu/stored_elements.hpp"
#include "support/random_seed.hpp"
#include "support/reference/reference_layout.hpp"
#include "support/reference/reference_operations.hpp"

namespace speedo::gpu {
namespace {

ConvolutionShape completed(ConvolutionShape shape) {
  shape.dst_size.clear();
  for (std::size_t i = 0; i < shape.kernel.size(); ++i) {
    const std::int64_t extent = shape.dilation[i] * (shape.kernel[i] - 1) + 1;
    shape.dst_size.push_back(
        shape.transposed
            ? shape.stride[i] * (shape.src_size[i] - 1) + extent - 2 * shape.pad[i]
            : (shape.src_size[i] + 2 * shape.pad[i] - extent) / shape.stride[i] + 1);
  }
  return shape;
}

ConvolutionShape with_layouts(ConvolutionShape shape, LayoutKind src, LayoutKind dst) {
  shape.src_layout = layout_of(src, shape.channels);
  shape.dst_layout = layout_of(dst, shape.outputs);
  return shape;
}

// A convolution's arrays, in the layouts of its shape, all rounded where its results are; gradients
// of parameters are added to what weights and bias are.
struct ConvolutionArrays {
  explicit ConvolutionArrays(const ConvolutionShape& shape)
      : src(laid_out(src_array(shape), shape.src_layout, 1)),
        dst_grad(laid_out(dst_array(shape), shape.dst_layout, 2)),
        weights(rounded(library_values(weight_count(shape), 3), shape.dst_layout.type)),
        bias(rounded(library_values(shape.outputs, 4), shape.dst_layout.type)) {}

  static std::vector<float> rounded(std::vector<float> values, ElementType type) {
    if (type == ElementType::kFloat32) return values;
    for (float& value : values) value = from_bfloat16(to_bfloat16(value));
    return values;
  }

  static std::vector<float> laid_out(const ArrayShape& array, Layout layout, std::uint64_t seed) {
    std::vector<float> values(static_cast<std::size_t>(array.storage_count(layout)));
    write_plain(array, layout, library_values(array.storage_count({}), seed).data(),
                values.data());
    return rounded(std::move(values), layout.type);
  }
  std::vector<float> src, dst_grad, weights, bias;
};

struct Passes {
  std::vector<float> dst, src_grad, weights_grad, bias_grad;
};

Passes reference_passes(const ConvolutionShape& shape, ConvolutionArrays arrays, bool has_bias) {
  const auto reference = make_reference_convolution(shape);
  Passes passes{arrays.dst_grad, arrays.src, arrays.weights, arrays.bias};
  reference->forward(arrays.src.data(), arrays.weights.data(),
                     has_bias ? arrays.bias.data() : nullptr, passes.dst.data());
  if (!shape.trains) return passes;
  reference->backward_data(arrays.dst_grad.data(), arrays.weights.data(), passes.src_grad.data());
  reference->backward_weights(arrays.src.data(), arrays.dst_grad.data(),
                              passes.weights_grad.data(),
                              has_bias ? passes.bias_grad.data() : nullptr);
  return passes;
}

// As the library has it in memory, and back.
float* put_elements(LibraryBench& bench, const std::vector<float>& values, ElementType type) {
  return bench.put(test::stored_as(values, type));
}
float* blank_elements(LibraryBench& bench, std::size_t count, ElementType type) {
  return put_elements(
      bench, std::vector<float>(count, std::numeric_limits<float>::quiet_NaN()), type);
}
std::vector<float> get_elements(LibraryBench& bench, const float* from, std::size_t count,
                                ElementType type) {
  const auto elements = static_cast<std::int64_t>(count);
  if (type == ElementType::kFloat32) return bench.get(from, elements);
  return test::read_elements(bench.get(from, (elements + 1) / 2).data(), elements, type);
}

Passes library_passes(LibraryBench& bench, const ConvolutionShape& shape,
                      const ConvolutionArrays& arrays, bool has_bias) {
  auto made = make_convolution(shape, {bench.products(), bench.dnn()});
  REQUIRE(made.has_value());
  REQUIRE(bench.workspace().provide().has_value());
  const auto count = [](const std::vector<float>& values) {
    return static_cast<std::int64_t>(values.size());
  };
  Passes passes{arrays.dst_grad, arrays.src, arrays.weights, arrays.bias};
  const ElementType src_type = shape.src_layout.type, dst_type = shape.dst_layout.type;
  const float* const src = put_elements(bench, arrays.src, src_type);
  float* const weights = bench.put(arrays.weights);
  float* const bias = has_bias ? bench.put(arrays.bias) : nullptr;
  float* const dst = blank_elements(bench, passes.dst.size(), dst_type);
  (*made)->forward(src, weights, bias, dst);
  passes.dst = get_elements(bench, dst, passes.dst.size(), dst_type);
  if (shape.trains) {
    const float* const dst_grad = put_elements(bench, arrays.dst_grad, dst_type);
    float* const src_grad = blank_elements(bench, passes.src_grad.size(), src_type);
    (*made)->backward_data(dst_grad, weights, src_grad);
    passes.src_grad = get_elements(bench, src_grad, passes.src_grad.size(), src_type);
    (*made)->backward_weights(src, dst_grad, weights, bias);
    passes.weights_grad = bench.get(weights, count(passes.weights_grad));
    if (has_bias) passes.bias_grad = bench.get(bias, count(passes.bias_grad));
  }
  const auto state = bench.driver().check();
  INFO((state ? std::string() : state.error().message));
  REQUIRE(state.has_value());
  return passes;
}

void require_passes(LibraryBench& bench, const ConvolutionShape& shape, bool has_bias,
                    double tolerance = kProductError) {
  CAPTURE(shape.batch, shape.channels, shape.outputs, shape.groups, shape.src_size, shape.dst_size,
          shape.kernel, shape.stride, shape.pad, shape.dilation, shape.src_layout.block,
          shape.dst_layout.block, shape.transposed, has_bias);
  const ConvolutionArrays arrays(shape);
  const Passes expected = reference_passes(shape, arrays, has_bias);
  const Passes got = library_passes(bench, shape, arrays, has_bias);
  // Biases are added to results that are rounded, gradients that are to what was there.
  const auto added = [&shape](const std::vector<float>& values) {
    return shape.dst_layout.type == ElementType::kBfloat16 ? energy(values) : 0.0;
  };
  const auto positions = static_cast<double>(shape.batch * count_of(shape.dst_size));
  const double biases = has_bias ? positions * added(arrays.bias) : 0.0;
  require_close(tolerance, got.dst, expected.dst, biases);
  require_close(tolerance, got.src_grad, expected.src_grad);
  require_close(tolerance, got.weights_grad, expected.weights_grad, added(arrays.weights));
  require_close(tolerance, got.bias_grad, expected.bias_grad, added(arrays.bias));
}

std::vector<ConvolutionShape> known_shapes() {
  return {
      // Plain, padded, strided, rectangular, dilated, grouped, 1 x 1, windows beside the image.
      shape_without_output({1, 1, 1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {1, 1}),
      shape_without_output({3, 3, 7, 1}, {11, 13}, {3, 3}, {1, 1}, {0, 0}, {1, 1}),
      shape_without_output({2, 4, 6, 2}, {17, 9}, {5, 5}, {1, 1}, {2, 2}, {1, 1}),
      shape_without_output({2, 3, 5, 1}, {23, 19}, {7, 5}, {2, 3}, {3, 1}, {1, 1}),
      shape_without_output({2, 6, 9, 3}, {13, 13}, {3, 2}, {1, 2}, {2, 0}, {2, 3}),
      shape_without_output({3, 5, 4, 1}, {7, 7}, {1, 1}, {2, 2}, {0, 0}, {1, 1}),
      shape_without_output({2, 2, 3, 1}, {4, 3}, {5, 5}, {1, 1}, {4, 4}, {1, 1}),
      shape_without_output({3, 4, 4, 4}, {8, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}),
      // Other counts of axes.
      shape_without_output({4, 3, 5, 1}, {}, {}, {}, {}, {}),
      shape_without_output({3, 4, 6, 2}, {17}, {3}, {2}, {1}, {2}),
      shape_without_output({2, 2, 3, 1}, {5, 6, 7}, {3, 2, 3}, {1, 2, 1}, {1, 0, 2}, {1, 1, 2}),
      shape_without_output({2, 2, 4, 2}, {3, 4, 3, 4}, {2, 2, 2, 2}, {1, 1, 2, 1}, {0, 1, 0, 1},
                           {1, 1, 1, 1}),
  };
}

TEST_CASE("convolutions by cuDNN agree with the reference") {
  ConvolutionShape shape = GENERATE(from_range(known_shapes()));
  const bool has_bias = GENERATE(true, false);
  shape.transposed = GENERATE(false, true);
  // The padding would cut the whole of a transposed one away.
  if (shape.transposed && shape.pad == Sizes{4, 4}) return;
  LibraryBench bench;
  require_passes(bench, completed(shape), has_bias);
  CHECK(bench.violations().empty());
}

TEST_CASE("convolutions by cuDNN agree with the reference, channels last too") {
  ConvolutionShape shape = GENERATE(from_range(known_shapes()));
  if (shape.kernel.size() > 3) return;
  shape.transposed = GENERATE(false, true);
  if (shape.transposed && shape.pad == Sizes{4, 4}) return;
  const bool plain_src = GENERATE(false, true);
  LibraryBench bench;
  require_passes(bench,
                 with_layouts(completed(shape),
                              plain_src ? LayoutKind::kPlain : LayoutKind::kChannelsLast,
                              LayoutKind::kChannelsLast),
                 true);
  CHECK(bench.violations().empty());
}

// Results are rounded, before a bias is added too.
constexpr double kRoundedError = 0x1p-11;
const LibraryOptions kBfloat16{.dnn = {.arithmetic = Arithmetic::kBfloat16}};

TEST_CASE("convolutions of bfloat16 arrays agree with the reference, by all kernels") {
  ConvolutionShape shape = GENERATE(from_range(known_shapes()));
  if (shape.kernel.size() > 3) return;
  shape.transposed = GENERATE(false, true);
  if (shape.transposed && shape.pad == Sizes{4, 4}) return;
  shape.activation = GENERATE(std::optional<UnaryOp>(), UnaryOp{UnaryKind::kRelu});
  const bool plain_src = GENERATE(false, true);
  LibraryBench bench(kBfloat16);
  require_passes(bench,
                 with_layouts(completed(shape),
                              plain_src ? LayoutKind::kPlain : LayoutKind::kChannelsLastBfloat16,
                              LayoutKind::kChannelsLastBfloat16),
                 GENERATE(true, false), kRoundedError);
  CHECK(bench.violations().empty());
}

TEST_CASE("bfloat16 arrays go to the libraries as they are") {
  const auto kernels = [](ConvolutionShape shape) {
    LibraryBench bench(kBfloat16);
    shape = with_layouts(completed(shape), LayoutKind::kChannelsLastBfloat16,
                         LayoutKind::kChannelsLastBfloat16);
    auto made = make_convolution(shape, {bench.products(), bench.dnn()});
    REQUIRE(made.has_value());
    return (*made)->info().kernel;
  };
  CHECK(kernels(shape_without_output({2, 8, 16, 1}, {9, 9}, {1, 1}, {1, 1}, {0, 0}, {1, 1})) ==
        "cublaslt gemm");
  CHECK(kernels(shape_without_output({2, 8, 16, 2}, {9, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}))
            .starts_with("cudnn"));
}

std::int64_t between(Random& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

ConvolutionShape random_shape(Random& random) {
  ConvolutionShape shape;
  shape.batch = between(random, 1, 3);
  shape.groups = between(random, 1, 3);
  shape.channels = shape.groups * between(random, 1, 4);
  shape.outputs = shape.groups * between(random, 1, 4);
  shape.transposed = random.below(3) == 0;
  const std::int64_t axes = random.below(4) == 0 ? between(random, 1, 4) : 2;
  for (std::int64_t i = 0; i < axes; ++i) {
    const std::int64_t src = between(random, 1, axes > 2 ? 4 : 9);
    shape.dilation.push_back(random.below(3) == 0 ? 2 : 1);
    const std::int64_t pad = between(random, 0, 2);
    const std::int64_t room = (src + 2 * pad - 1) / shape.dilation.back() + 1;
    shape.kernel.push_back(between(random, 1, std::min<std::int64_t>(room, 4)));
    shape.stride.push_back(between(random, 1, 3));
    shape.src_size.push_back(src);
    const std::int64_t covered =
        shape.stride.back() * (src - 1) + shape.dilation.back() * (shape.kernel.back() - 1) + 1;
    shape.pad.push_back(shape.transposed ? std::min<std::int64_t>(pad, (covered - 1) / 2) : pad);
  }
  if (!shape.transposed && random.below(2) == 0) {
    const std::vector<UnaryOp> all = {{UnaryKind::kRelu}, {UnaryKind::kRelu, 0.125F},
                                      {UnaryKind::kElu, 0.5F}};
    shape.activation = all[random.below(all.size())];
  }
  shape = completed(shape);
  constexpr LayoutKind kKinds[] = {LayoutKind::kPlain, LayoutKind::kPlain,
                                   LayoutKind::kChannelsLast, LayoutKind::kChannelsLastBfloat16};
  const LayoutKind kind = axes <= 3 ? kKinds[random.below(4)] : LayoutKind::kPlain;
  return with_layouts(shape, kind, kind);
}

TEST_CASE("random convolutions by cuDNN agree with the reference") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({1, 2, 3})));
  CAPTURE(seed);
  Random random(seed);
  for (int i = 0; i < 40; ++i) {
    const ConvolutionShape shape = random_shape(random);
    const bool is_short = shape.dst_layout.type == ElementType::kBfloat16;
    LibraryBench bench(
        {.dnn = {.arithmetic = is_short ? Arithmetic::kBfloat16 : Arithmetic::kFloat32,
                 .is_deterministic = i % 2 == 0},
         .driver = {.seed = seed}});
    require_passes(bench, shape, random.below(4) != 0, is_short ? kRoundedError : kProductError);
    CHECK(bench.violations().empty());
  }
}

ConvolutionShape small_shape(std::int64_t outputs = 6) {
  return completed(
      shape_without_output({2, 4, outputs, 1}, {8, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}));
}

TEST_CASE("bias and ReLU go in one pass where cuDNN can do it, and in two where it cannot") {
  ConvolutionShape shape = small_shape();
  shape.activation = UnaryOp{UnaryKind::kRelu};
  shape.trains = false;
  shape.groups = GENERATE(1, 2);
  const bool has_bias = GENERATE(true, false);
  LibraryBench bench;
  require_passes(bench, shape, has_bias);
  CHECK(bench.cudnn().fused() == (shape.groups == 1 && has_bias ? 1 : 0));
  CHECK(bench.cudnn().passes() == 1);
  CHECK(bench.violations().empty());
}

TEST_CASE("cuDNN's fused ReLU of NaN is NaN") {
  ConvolutionShape shape = small_shape();
  shape.activation = UnaryOp{UnaryKind::kRelu};
  shape.trains = false;
  ConvolutionArrays arrays(shape);
  arrays.bias.front() = std::numeric_limits<float>::quiet_NaN();
  LibraryBench bench;
  const std::vector<float> dst = library_passes(bench, shape, arrays, true).dst;
  CHECK(bench.cudnn().fused() == 1);
  const std::vector<float> expected = reference_passes(shape, arrays, true).dst;
  REQUIRE(dst.size() == expected.size());
  for (std::size_t i = 0; i < dst.size(); ++i) {
    CAPTURE(i);
    CHECK(std::isnan(dst[i]) == std::isnan(expected[i]));
  }
  CHECK(bench.violations().empty());
}

// Of an algorithm for a shape and pass.
constexpr std::int64_t kTrials = 2;

TEST_CASE("an algorithm is looked for once for each shape and pass") {
  LibraryBench bench;
  for (int i = 0; i < 3; ++i) require_passes(bench, small_shape(), true);
  CHECK(bench.dnn().searches() == 3);
  CHECK(bench.cudnn().trials() == 3 * kTrials);
  CHECK(bench.cudnn().rankings() == 3);
  ConvolutionShape forward_only = small_shape();
  forward_only.trains = false;
  require_passes(bench, forward_only, true);
  CHECK(bench.dnn().searches() == 3);
  require_passes(bench, small_shape(8), true);
  CHECK(bench.dnn().searches() == 6);
  CHECK(bench.violations().empty());
}

TEST_CASE("ever new sizes of a convolution are not tried for ever") {
  constexpr std::int64_t kSizes = 11, kTried = 8, kPasses = 3;
  const std::int64_t groups = GENERATE(1, 2);
  LibraryBench bench;
  if (groups > 1) bench.cudnn().slow_groups_down();
  const auto pass = [&](std::int64_t height, std::int64_t outputs) {
    require_passes(bench,
                   completed(shape_without_output({1, 32 * groups, 32 * groups + outputs, groups},
                                                  {height, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1})),
                   true);
  };
  for (std::int64_t i = 0; i < kSizes; ++i) pass(5 + i, 0);
  CHECK(bench.dnn().searches() == kPasses * kSizes);
  CHECK(bench.cudnn().trials() == kTrials * kPasses * kTried * groups);
  const std::int64_t rankings = bench.cudnn().rankings();
  CHECK(rankings * kTrials == bench.cudnn().trials());
  CHECK(bench.cudnn().passes() == kPasses * kSizes * groups);

  pass(5, 8);
  CHECK(bench.cudnn().trials() == kTrials * kPasses * (kTried + 1) * groups);
  CHECK(bench.violations().empty());
}

TEST_CASE("a size that cannot go as those before it goes by heuristics") {
  const auto shape = [](std::int64_t height) {
    return completed(
        shape_without_output({1, 4, 6, 1}, {height, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}));
  };
  const std::size_t limit = 8 * static_cast<std::size_t>(dst_array(shape(12)).storage_count({}));
  LibraryBench bench({.dnn = {.workspace_bytes_max = limit}});
  for (std::int64_t height = 5; height < 13; ++height) require_passes(bench, shape(height), true);
  const std::int64_t trials = bench.cudnn().trials(), rankings = bench.cudnn().rankings();
  require_passes(bench, shape(64), true);
  CHECK(bench.cudnn().trials() == trials);
  CHECK(bench.cudnn().rankings() > rankings);
  CHECK(bench.cudnn().work_bytes_max() <= limit);
  CHECK(bench.violations().empty());
}

TEST_CASE("an algorithm that wants more working memory than it may have is not taken") {
  const ConvolutionShape shape = small_shape();
  const std::size_t dst_bytes = 4 * static_cast<std::size_t>(dst_array(shape).storage_count({}));
  const std::size_t limit = GENERATE_COPY(std::size_t{0}, dst_bytes / 2 + 16, 4 * dst_bytes);
  CAPTURE(limit);
  LibraryBench bench({.dnn = {.workspace_bytes_max = limit}});
  require_passes(bench, shape, true);
  CHECK(bench.cudnn().work_bytes_max() <= limit);
  CHECK(bench.violations().empty());
}

// The kernels that a convolution takes.
std::string kernels_with(const DnnOptions& options) {
  LibraryBench bench({.dnn = options});
  auto made = make_convolution(small_shape(), {bench.products(), bench.dnn()});
  REQUIRE(made.has_value());
  CHECK((bench.cudnn().trials() == 0) == options.is_deterministic);
  return (*made)->info().kernel;
}

TEST_CASE("deterministic convolutions take sure algorithms, without trials") {
  CHECK(kernels_with({.is_deterministic = true}) ==
        "cudnn winograd | cudnn fft in tiles | cudnn weights 1");
  CHECK(kernels_with({.is_deterministic = false}) ==
        "cudnn winograd | cudnn fft in tiles | cudnn weights 3");
  // cuDNN's algorithms of the backward passes without memory are not sure.
  CHECK(kernels_with({.is_deterministic = true, .workspace_bytes_max = 64}) ==
        "cudnn winograd | im2col, cublaslt gemm | im2col, cublaslt gemm");
}

TEST_CASE("what cuDNN has no algorithm for is computed by matrix products") {
  ConvolutionShape shape = small_shape();
  shape.groups = GENERATE(1, 2);
  LibraryBench bench;
  bench.cudnn().lack_algorithms();
  require_passes(bench, shape, true);
  CHECK(bench.cudnn().passes() == 0);
  CHECK(bench.cublas().products() > 0);
  CHECK(bench.violations().empty());
}

std::string kernels_of(LibraryBench& bench, const ConvolutionShape& shape) {
  auto made = make_convolution(shape, {bench.products(), bench.dnn()});
  REQUIRE(made.has_value());
  return (*made)->info().kernel;
}

TEST_CASE("how long kernels take to load does not decide between algorithms") {
  LibraryBench bench;
  bench.cudnn().load_when_tried();
  CHECK(kernels_of(bench, small_shape()) ==
        "cudnn winograd | cudnn fft in tiles | cudnn weights 3");
  CHECK(bench.dnn().searches() == 3);
  CHECK(bench.cudnn().trials() == 3 * kTrials);
  CHECK(bench.violations().empty());
}

// Windows of one element; positions of plain arrays that cuDNN sums over, and that products do.
std::vector<ConvolutionShape> single_windows() {
  return {
      shape_without_output({1, 1, 1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {1, 1}),
      shape_without_output({3, 5, 7, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {1, 1}),
      shape_without_output({3, 9, 4, 1}, {8, 10}, {1, 1}, {1, 1}, {0, 0}, {1, 1}),
      shape_without_output({2, 4, 6, 1}, {7, 7}, {1, 1}, {1, 1}, {0, 0}, {2, 2}),
      shape_without_output({2, 6, 1, 1}, {4, 4, 4}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}),
      shape_without_output({2, 1, 6, 1}, {64}, {1}, {1}, {0}, {1}),
      // Gradients of so many weights are summed one sample after the other.
      shape_without_output({2, 1450, 1450, 1}, {8, 8}, {1, 1}, {1, 1}, {0, 0}, {1, 1}),
  };
}

TEST_CASE("windows of one element are products of the arrays as they lie") {
  ConvolutionShape shape = completed(GENERATE(from_range(single_windows())));
  const bool is_last = GENERATE(true, false), has_bias = GENERATE(true, false);
  const bool is_large = shape.channels > 1000;
  if (is_large && (is_last || has_bias)) return;
  shape.transposed = !is_large && GENERATE(false, true);
  if (!shape.transposed && GENERATE(false, true)) shape.activation = UnaryOp{UnaryKind::kRelu};
  if (is_last) {
    shape = with_layouts(shape, LayoutKind::kChannelsLast, LayoutKind::kChannelsLast);
  }
  LibraryBench bench;
  require_passes(bench, shape, has_bias);
  const std::int64_t positions = count_of(shape.src_size);
  const bool sums = is_last || positions == 1 || (positions >= 64 && positions % 4 == 0);
  CHECK(bench.cudnn().passes() == (sums ? 0 : 1));
  CHECK(bench.violations().empty());
}

TEST_CASE("strides, padding, groups and unequal layouts are not taken for products") {
  const ConvolutionShape all = completed(
      shape_without_output({2, 4, 6, 1}, {8, 8}, {1, 1}, {1, 1}, {0, 0}, {1, 1}));
  LibraryBench bench;
  CHECK(kernels_of(bench, all) == "cublaslt gemm");
  std::vector<ConvolutionShape> others(4, all);
  others[0].stride = {2, 1};
  others[1].pad = {0, 1};
  others[2].groups = 2;
  others[3].kernel = {1, 2};
  for (const ConvolutionShape& other : others) {
    CHECK(kernels_of(bench, completed(other)).find("cublaslt") == std::string::npos);
  }
  CHECK(kernels_of(bench, with_layouts(all, LayoutKind::kPlain, LayoutKind::kChannelsLast))
            .find("cublaslt") == std::string::npos);
  CHECK(bench.violations().empty());
}

TEST_CASE("groups are computed one after the other where that was measured to be faster") {
  const bool is_slow = GENERATE(true, false), is_deterministic = GENERATE(false, true);
  const std::int64_t width = GENERATE(16, 8);
  const LayoutKind kind = GENERATE(LayoutKind::kPlain, LayoutKind::kChannelsLast,
                                   LayoutKind::kChannelsLastBfloat16);
  const bool is_short = kind == LayoutKind::kChannelsLastBfloat16;
  // A group's channels take whole pieces of 16 bytes.
  const std::int64_t outputs = 2 * width + (is_short ? 16 : 8);
  ConvolutionShape shape = completed(shape_without_output({2, 2 * width, outputs, 2}, {5, 6},
                                                          {3, 3}, {1, 1}, {1, 1}, {1, 1}));
  const bool rectifies = GENERATE(false, true);
  if (rectifies) shape.activation = UnaryOp{UnaryKind::kRelu};
  shape = with_layouts(shape, kind, kind);
  LibraryBench bench(
      {.dnn = {.arithmetic = is_short ? Arithmetic::kBfloat16 : Arithmetic::kFloat32,
               .is_deterministic = is_deterministic}});
  if (is_slow) bench.cudnn().slow_groups_down();
  require_passes(bench, shape, true, is_short ? kRoundedError : kProductError);
  const bool splits = is_slow && !is_deterministic && width == 16;
  CHECK(bench.cudnn().passes() == (splits ? 6 : 3));
  CHECK(bench.cudnn().fused() == (splits && rectifies && !is_short ? 2 : 0));
  const std::string kernels = kernels_of(bench, shape);
  CHECK((kernels.find("of each group") != std::string::npos) == splits);
  CHECK(bench.violations().empty());
}

TEST_CASE("weights are put in order where all arrays have channels last") {
  const bool is_last = GENERATE(true, false);
  const bool plain_src = GENERATE(true, false);
  ConvolutionShape shape = small_shape();
  if (is_last) {
    shape = with_layouts(shape, plain_src ? LayoutKind::kPlain : LayoutKind::kChannelsLast,
                         LayoutKind::kChannelsLast);
  }
  LibraryBench bench;
  for (const ConvolutionPass pass : kConvolutionPasses) {
    auto plan = bench.dnn().plan(shape, pass);
    REQUIRE(plan.has_value());
    CHECK((*plan)->weight_layout() == (is_last && !plain_src ? Layout{4} : Layout{}));
  }
}

TEST_CASE("rounded operands want channels last, bfloat16 arrays of it, and float32 plain ones") {
  std::vector<ConvolutionShape> shapes = {small_shape(8)};
  CHECK(preferred_layout(shapes, Arithmetic::kFloat32) == LayoutKind::kPlain);
  CHECK(preferred_layout(shapes, Arithmetic::kTf32) == LayoutKind::kChannelsLast);
  CHECK(preferred_layout(shapes, Arithmetic::kBfloat16) == LayoutKind::kChannelsLastBfloat16);
  shapes.push_back(small_shape(6));
  CHECK(preferred_layout(shapes, Arithmetic::kBfloat16) == LayoutKind::kChannelsLastBfloat16);
  shapes.push_back(small_shape(6));
  CHECK(preferred_layout(shapes, Arithmetic::kBfloat16) == LayoutKind::kChannelsLast);
  CHECK(preferred_layout(shapes, Arithmetic::kTf32) == LayoutKind::kChannelsLast);
  CHECK(preferred_layout({{known_shapes().back()}}, Arithmetic::kTf32) == LayoutKind::kPlain);
}

TEST_CASE("what cuDNN has no algorithm for is computed in any layout") {
  const auto [src, dst] = GENERATE(table<LayoutKind, LayoutKind>(
      {{LayoutKind::kBlocked8, LayoutKind::kBlocked8},
       {LayoutKind::kPlain, LayoutKind::kBlocked16},
       {LayoutKind::kBlocked16, LayoutKind::kPlain},
       {LayoutKind::kChannelsLast, LayoutKind::kChannelsLast}}));
  ConvolutionShape shape = with_layouts(small_shape(12), src, dst);
  shape.groups = GENERATE(1, 2);
  shape.activation = UnaryOp{UnaryKind::kRelu};
  LibraryBench bench;
  if (src == LayoutKind::kChannelsLast) bench.cudnn().lack_algorithms();
  require_passes(bench, shape, true);
  CHECK(bench.cudnn().passes() == 0);
  CHECK(bench.violations().empty());
}

TEST_CASE("operands are rounded where it was asked for, which is off by default") {
  const Arithmetic arithmetic =
      GENERATE(Arithmetic::kFloat32, Arithmetic::kTf32, Arithmetic::kFloat16);
  const bool is_rounded = arithmetic != Arithmetic::kFloat32;
  LibraryBench bench({.dnn = {.arithmetic = arithmetic}});
  const ConvolutionArrays arrays(small_shape());
  const double error =
      squared_error(library_passes(bench, small_shape(), arrays, true).dst,
                    reference_passes(small_shape(), arrays, true).dst);
  CHECK(error <= (is_rounded ? 1e-6 : 1e-13));
  CHECK((error >= 1e-10) == is_rounded);
}

TEST_CASE("a convolution counts the operations and the working memory of its kernels") {
  LibraryBench bench;
  const ConvolutionShape shape = small_shape();
  auto made = make_convolution(shape, {bench.products(), bench.dnn()});
  REQUIRE(made.has_value());
  CHECK((*made)->info().forward_flops == 2.0 * 2 * 6 * 4 * 9 * 72);
  CHECK((*made)->info().backward_flops == 2.0 * (*made)->info().forward_flops);
  // The largest algorithm of the double: 16 times the result.
  CHECK(bench.workspace().bytes() >= 8 * 4 * dst_array(shape).storage_count({}));
}

TEST_CASE("a lack of working memory is an error of the driver, and not of the host") {
  LibraryBench bench({.driver = {.capacity = std::size_t{5} << 20U}});
  ConvolutionShape shape =
      completed(shape_without_output({8, 4, 16, 1}, {16, 16}, {5, 5}, {1, 1}, {2, 2}, {1, 1}));
  auto made = make_convolution(shape, {bench.products(), bench.dnn()});
  REQUIRE(made.has_value());
  const auto lacks = bench.workspace().provide();
  REQUIRE(!lacks.has_value());
  CHECK(lacks.error().code == ErrorCode::kFull);
}

TEST_CASE("another version of cuDNN is named") {
  LibraryBench bench;
  CudnnFunctions functions = test::CudnnDouble::functions();
  functions.get_version = [] { return std::size_t{80907}; };
  const auto made = make_cudnn(functions, bench.queue().stream, {});
  REQUIRE(!made.has_value());
  CHECK(made.error().code == ErrorCode::kMismatch);
  CHECK(made.error().message.find("cuDNN 8.9.7 is here") != std::string::npos);
}

}  // namespace
}  // namespace speedo::gpu
