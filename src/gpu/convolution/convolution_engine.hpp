#pragma once

#include <string>

#include <speedo/base/result.hpp>

#include "gpu/convolution/convolution_pass.hpp"

namespace speedo::gpu {

// One way to compute some passes of a convolution that is not transposed; contracts of the passes
// as in Convolution, but that backward_weights() knows no bias, which is summed elsewhere.
class ConvolutionEngine {
 public:
  virtual ~ConvolutionEngine() = default;
  // Called once for each pass that these kernels shall serve, before it is used: plans it, and
  // counts the working memory. Error: kUnsupported: other kernels are to serve the pass.
  virtual Result<void> reserve(ConvolutionPass pass) = 0;
  virtual std::string name(ConvolutionPass pass) const = 0;
  virtual void forward(const float* src, const float* weights, const float* bias, float* dst) = 0;
  virtual void backward_data(const float* dst_grad, const float* weights, float* src_grad) = 0;
  virtual void backward_weights(const float* src, const float* dst_grad, float* weights_grad) = 0;
};

}  // namespace speedo::gpu
