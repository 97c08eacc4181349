#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include <speedo/backend/operations.hpp>

namespace speedo::gpu {

enum class ConvolutionPass { kForward, kBackwardData, kBackwardWeights };
inline constexpr std::array kConvolutionPasses{
    ConvolutionPass::kForward, ConvolutionPass::kBackwardData, ConvolutionPass::kBackwardWeights};

inline std::int64_t count_of(const std::vector<std::int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}
inline ArrayShape src_array(const ConvolutionShape& shape) {
  return {shape.batch, shape.channels, count_of(shape.src_size)};
}
inline ArrayShape dst_array(const ConvolutionShape& shape) {
  return {shape.batch, shape.outputs, count_of(shape.dst_size)};
}
inline std::int64_t weight_count(const ConvolutionShape& shape) {
  return shape.outputs * (shape.channels / shape.groups) * count_of(shape.kernel);
}

}  // namespace speedo::gpu
