// Convolutions of many shapes, the CPU backend against the reference.

#include "backend/conformance.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

using Sizes = std::vector<std::int64_t>;

ConvolutionShape make_shape(Sizes batch_channels_outputs_groups, Sizes src, Sizes kernel,
                            Sizes stride, Sizes pad, Sizes dilation) {
  ConvolutionShape shape;
  shape.batch = batch_channels_outputs_groups[0];
  shape.channels = batch_channels_outputs_groups[1];
  shape.outputs = batch_channels_outputs_groups[2];
  shape.groups = batch_channels_outputs_groups[3];
  for (std::size_t i = 0; i < src.size(); ++i) {
    const std::int64_t extent = dilation[i] * (kernel[i] - 1) + 1;
    shape.dst_size.push_back((src[i] + 2 * pad[i] - extent) / stride[i] + 1);
  }
  shape.src_size = std::move(src);
  shape.kernel = std::move(kernel);
  shape.stride = std::move(stride);
  shape.pad = std::move(pad);
  shape.dilation = std::move(dilation);
  return shape;
}

std::vector<ConvolutionShape> shapes() {
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

std::int64_t count_of(const Sizes& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

TEST_CASE("convolutions agree with the reference") {
  const ConvolutionShape shape = GENERATE(from_range(shapes()));
  const std::int64_t src_count = shape.batch * shape.channels * count_of(shape.src_size);
  const std::int64_t dst_count = shape.batch * shape.outputs * count_of(shape.dst_size);
  const std::int64_t weight_count =
      shape.outputs * shape.channels / shape.groups * count_of(shape.kernel);
  CAPTURE(shape.batch, shape.channels, shape.outputs, shape.groups, shape.src_size, shape.kernel,
          shape.stride, shape.pad, shape.dilation);
  const auto src = test_values(src_count, -1, 1, 1);
  const auto weights = test_values(weight_count, -1, 1, 2);
  const auto bias = test_values(shape.outputs, -1, 1, 3);
  const auto dst_grad = test_values(dst_count, -1, 1, 4);
  const auto make = [&](Device& device) {
    auto made = device.backend().make_convolution(shape);
    REQUIRE(made.has_value());
    return std::move(*made);
  };

  for (const bool with_bias : {true, false}) {
    require_conforming(1e-6, [&](Device& device) {
      float* dst = device.blank(dst_count);
      make(device)->forward(device.put(src), device.put(weights),
                            with_bias ? device.put(bias) : nullptr, dst);
      return device.get(dst, dst_count);
    });
  }
  require_conforming(1e-6, [&](Device& device) {
    float* src_grad = device.blank(src_count);
    make(device)->backward_data(device.put(dst_grad), device.put(weights), src_grad);
    return device.get(src_grad, src_count);
  });
  // Gradients of parameters are added to what is there.
  require_conforming(2e-6, [&](Device& device) {
    float* weights_grad = device.put(weights);
    make(device)->backward_weights(device.put(src), device.put(dst_grad), weights_grad, nullptr);
    return device.get(weights_grad, weight_count);
  });
  require_conforming(2e-6, [&](Device& device) {
    float* bias_grad = device.put(bias);
    make(device)->backward_weights(device.put(src), device.put(dst_grad), nullptr, bias_grad);
    return device.get(bias_grad, shape.outputs);
  });
}

TEST_CASE("operations of one backend share scratch memory without harm") {
  const auto small = make_shape({2, 1, 2, 1}, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1});
  const auto large = make_shape({2, 3, 8, 1}, {21, 21}, {5, 5}, {1, 1}, {2, 2}, {1, 1});
  require_conforming(1e-6, [&](Device& device) {
    auto first = device.backend().make_convolution(small);
    auto second = device.backend().make_convolution(large);  // grows the scratch of the first
    REQUIRE(first.has_value());
    REQUIRE(second.has_value());
    float* dst = device.blank(2 * 2 * 25);
    float* other = device.blank(2 * 8 * 441);
    const float* src = device.put(test_values(2 * 3 * 441, -1, 1, 1));
    const float* weights = device.put(test_values(8 * 3 * 25, -1, 1, 2));
    (*second)->forward(src, weights, nullptr, other);
    (*first)->forward(src, weights, nullptr, dst);
    return device.get(dst, 2 * 2 * 25);
  });
}

}  // namespace
}  // namespace speedo
