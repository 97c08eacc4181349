#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>

#include <speedo/backend/operations.hpp>
#include <speedo/cpu/cpu_options.hpp>

#include "cpu/memory.hpp"
#include "cpu/support/aligned.hpp"
#include "cpu/thread_pool.hpp"

namespace speedo::cpu {

// What the operations of one backend share.
struct Context {
  ThreadPool& pool;
  Scratch& scratch;
  CpuPrecision precision = CpuPrecision::kFloat32;
};

enum class ConvolutionPass { kForward, kBackwardData, kBackwardWeights };
inline constexpr std::array kConvolutionPasses{
    ConvolutionPass::kForward, ConvolutionPass::kBackwardData, ConvolutionPass::kBackwardWeights};

// One way to compute some passes of a convolution; contracts of the passes as in Convolution.
class ConvolutionKernels {
 public:
  virtual ~ConvolutionKernels() = default;
  // Called once for each pass that these kernels shall serve, before it is used: makes them and
  // counts the scratch memory. False if they cannot be made: other kernels are to serve the pass.
  virtual bool reserve(ConvolutionPass pass) = 0;
  virtual std::string name(ConvolutionPass pass) const = 0;
  virtual void forward(const float* src, const float* weights, const float* bias, float* dst) = 0;
  virtual void backward_data(const float* dst_grad, const float* weights, float* src_grad) = 0;
  virtual void backward_weights(const float* src, const float* dst_grad, float* weights_grad,
                                float* bias_grad) = 0;
};

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
inline bool all_are(const std::vector<std::int64_t>& sizes, std::int64_t wanted) {
  return std::all_of(sizes.begin(), sizes.end(),
                     [wanted](std::int64_t size) { return size == wanted; });
}

}  // namespace speedo::cpu
