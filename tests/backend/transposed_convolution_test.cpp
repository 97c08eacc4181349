// Transposed convolutions, Caffe's Deconvolution, the CPU backend against the reference.

#include <algorithm>

#include <speedo/base/random.hpp>

#include "backend/conformance.hpp"
#include "backend/convolution_shapes.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/random_seed.hpp"

namespace speedo {
namespace {

ConvolutionShape completed(ConvolutionShape shape) {
  shape.transposed = true;
  shape.dst_size.clear();
  for (std::size_t i = 0; i < shape.kernel.size(); ++i) {
    const std::int64_t extent = shape.dilation[i] * (shape.kernel[i] - 1) + 1;
    shape.dst_size.push_back(shape.stride[i] * (shape.src_size[i] - 1) + extent -
                             2 * shape.pad[i]);
  }
  return shape;
}

ConvolutionShape transposed_shape(Sizes batch_channels_outputs_groups, Sizes src, Sizes kernel,
                                  Sizes stride, Sizes pad, Sizes dilation) {
  return completed(shape_without_output(std::move(batch_channels_outputs_groups), std::move(src),
                                        std::move(kernel), std::move(stride), std::move(pad),
                                        std::move(dilation)));
}

std::vector<ConvolutionShape> known_shapes() {
  return {
      // Upsampling by channel: kernels of twice the step, of the step, and others.
      transposed_shape({2, 3, 3, 3}, {5, 4}, {4, 4}, {2, 2}, {1, 1}, {1, 1}),
      transposed_shape({1, 21, 21, 21}, {4, 5}, {16, 16}, {8, 8}, {4, 4}, {1, 1}),
      transposed_shape({2, 16, 16, 16}, {6, 7}, {4, 4}, {2, 2}, {0, 0}, {1, 1}),
      transposed_shape({1, 5, 5, 5}, {3, 3}, {64, 64}, {32, 32}, {0, 0}, {1, 1}),
      transposed_shape({3, 17, 17, 17}, {7, 1}, {3, 2}, {3, 2}, {0, 0}, {1, 1}),
      transposed_shape({2, 2, 2, 2}, {9, 33}, {5, 3}, {1, 1}, {2, 1}, {1, 1}),
      transposed_shape({1, 4, 4, 4}, {40, 37}, {4, 4}, {2, 2}, {1, 1}, {1, 1}),
      // Steps that leave gaps; dilation; padding that cuts whole kernels away.
      transposed_shape({2, 3, 3, 3}, {4, 5}, {2, 3}, {5, 4}, {0, 0}, {1, 1}),
      transposed_shape({2, 4, 4, 4}, {5, 6}, {3, 3}, {2, 3}, {2, 1}, {2, 3}),
      transposed_shape({1, 3, 3, 3}, {6, 6}, {2, 2}, {2, 2}, {3, 4}, {1, 1}),
      transposed_shape({1, 2, 2, 2}, {8, 9}, {1, 1}, {1, 1}, {2, 3}, {1, 1}),
      // DCGAN's layers, small.
      transposed_shape({2, 20, 32, 1}, {1, 1}, {4, 4}, {1, 1}, {0, 0}, {1, 1}),
      transposed_shape({2, 32, 16, 1}, {4, 4}, {4, 4}, {2, 2}, {1, 1}, {1, 1}),
      transposed_shape({3, 16, 3, 1}, {8, 8}, {4, 4}, {2, 2}, {1, 1}, {1, 1}),
      transposed_shape({2, 64, 48, 1}, {5, 5}, {5, 5}, {2, 2}, {2, 2}, {1, 1}),
      transposed_shape({2, 32, 32, 1}, {6, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}),
      transposed_shape({2, 16, 1, 1}, {7, 6}, {5, 3}, {2, 3}, {0, 0}, {1, 1}),
      transposed_shape({2, 1, 8, 1}, {7, 6}, {5, 3}, {1, 1}, {0, 0}, {1, 1}),
      // Groups, other counts of axes.
      transposed_shape({2, 6, 10, 2}, {5, 5}, {3, 3}, {2, 1}, {0, 1}, {1, 1}),
      transposed_shape({2, 4, 8, 4}, {5, 5}, {3, 3}, {2, 2}, {0, 1}, {1, 1}),
      transposed_shape({3, 4, 6, 2}, {9}, {3}, {2}, {1}, {2}),
      transposed_shape({2, 5, 5, 5}, {9}, {4}, {2}, {1}, {1}),
      transposed_shape({2, 3, 4, 1}, {3, 2, 4}, {2, 3, 2}, {2, 1, 3}, {0, 1, 1}, {1, 1, 2}),
      transposed_shape({2, 3, 3, 3}, {3, 2, 4}, {2, 3, 2}, {2, 1, 3}, {0, 1, 1}, {1, 1, 2}),
      transposed_shape({2, 6, 4, 1}, {}, {}, {}, {}, {}),
  };
}

std::int64_t between(Random& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

ConvolutionShape random_shape(Random& random) {
  const std::int64_t groups = between(random, 1, 5) * between(random, 1, 4);
  const bool by_channel = random.below(2) == 0;
  ConvolutionShape shape;
  shape.batch = between(random, 1, 3);
  shape.groups = groups;
  shape.channels = groups * (by_channel ? 1 : between(random, 1, 6));
  shape.outputs = groups * (by_channel ? 1 : between(random, 1, 6));
  const std::int64_t axes = random.below(4) == 0 ? between(random, 1, 3) : 2;
  for (std::int64_t i = 0; i < axes; ++i) {
    shape.src_size.push_back(between(random, 1, axes == 3 ? 4 : 12));
    shape.kernel.push_back(between(random, 1, 5));
    shape.stride.push_back(between(random, 1, 4));
    shape.dilation.push_back(random.below(3) == 0 ? between(random, 2, 3) : 1);
    const std::int64_t covered = shape.stride.back() * (shape.src_size.back() - 1) +
                                 shape.dilation.back() * (shape.kernel.back() - 1) + 1;
    shape.pad.push_back(std::min<std::int64_t>(between(random, 0, 4), (covered - 1) / 2));
  }
  return completed(std::move(shape));
}

// What the passes give; without bias it has no parameters' gradients but the weights'.
std::vector<float> compute(Workbench& bench, const ConvolutionShape& shape, bool with_bias) {
  const ArrayShape src{shape.batch, shape.channels, product_of(shape.src_size)};
  const ArrayShape dst{shape.batch, shape.outputs, product_of(shape.dst_size)};
  const std::int64_t taps = product_of(shape.kernel);
  const std::int64_t weight_count = shape.outputs * shape.channels / shape.groups * taps;
  auto made = bench.backend().make_convolution(shape);
  REQUIRE(made.has_value());
  const float* source = bench.put_array(src, shape.src_layout, test_values(src));
  const float* dst_grad = bench.put_array(dst, shape.dst_layout, test_values(dst, -1, 1, 4));
  float* weights = bench.put(test_values(weight_count, -1, 1, 2));
  float* bias = with_bias ? bench.put(test_values(shape.outputs, -1, 1, 3)) : nullptr;
  float* output = bench.blank_array(dst, shape.dst_layout);
  (*made)->forward(source, weights, bias, output);
  auto results = over_root(shape.channels / shape.groups * taps,
                           bench.get_array(dst, shape.dst_layout, output));
  if (!shape.trains) return results;
  float* src_grad = bench.blank_array(src, shape.src_layout);
  (*made)->backward_data(dst_grad, weights, src_grad);
  (*made)->backward_weights(source, dst_grad, weights, bias);
  results = join(results, over_root(shape.outputs / shape.groups * taps,
                                    bench.get_array(src, shape.src_layout, src_grad)));
  results = join(results, over_root(shape.batch * src.spatial, bench.get(weights, weight_count)));
  if (!with_bias) return results;
  return join(results, over_root(shape.batch * dst.spatial, bench.get(bias, shape.outputs)));
}

void require_conforming_in_all_layouts(const ConvolutionShape& given) {
  in_all_layouts(given, [](const ConvolutionShape& shape, LayoutKind kind) {
    CAPTURE(shape.batch, shape.channels, shape.outputs, shape.groups, shape.src_size,
            shape.dst_size, shape.kernel, shape.stride, shape.pad, shape.dilation,
            shape.src_layout.block, shape.dst_layout.block);
    const bool with_bias = kind != LayoutKind::kBlocked8;
    require_conforming_vectors(
        3e-6, [&](Workbench& bench) { return compute(bench, shape, with_bias); });
  });
}

TEST_CASE("transposed convolutions agree with the reference in every layout") {
  require_conforming_in_all_layouts(GENERATE(from_range(known_shapes())));
}

TEST_CASE("random transposed convolutions agree with the reference in every layout") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({1, 2})));
  CAPTURE(seed);
  Random random(seed);
  for (int i = 0; i < 25; ++i) require_conforming_in_all_layouts(random_shape(random));
}

TEST_CASE("a transposed convolution that is not trained has its forward pass") {
  ConvolutionShape shape = GENERATE(from_range(known_shapes()));
  shape.trains = false;
  shape.activation = GENERATE(UnaryOp{UnaryKind::kRelu, 0.0F}, UnaryOp{UnaryKind::kElu, 0.5F});
  const auto kind = GENERATE(LayoutKind::kPlain, LayoutKind::kBlocked16);
  const bool with_bias = GENERATE(false, true);
  shape.src_layout = layout_of(kind, shape.channels);
  shape.dst_layout = layout_of(kind, shape.outputs);
  CAPTURE(shape.channels, shape.outputs, shape.groups, shape.kernel, shape.dst_layout.block);
  require_conforming_vectors(
      3e-6, [&](Workbench& bench) { return compute(bench, shape, with_bias); });
}

TEST_CASE("a transposed convolution counts the products of its own kernels") {
  const auto shape = transposed_shape({2, 16, 8, 1}, {5, 5}, {4, 4}, {2, 2}, {1, 1}, {1, 1});
  Workbench bench(test::make_backend(1));
  const auto made = bench.backend().make_convolution(shape);
  REQUIRE(made.has_value());
  REQUIRE((*made)->info().forward_flops == 2.0 * 2 * 16 * 25 * 8 * 16);
  REQUIRE((*made)->info().backward_flops == 2.0 * (*made)->info().forward_flops);
}

}  // namespace
}  // namespace speedo
