#pragma once

#include <cstdint>
#include <vector>

#include <speedo/backend/element_type.hpp>

#include "support/gpu/short_floats.hpp"

namespace speedo::test {

// A convolution as cuDNN's descriptors say it.
struct CudnnTensor {
  std::vector<int> dims, strides;  // batch, channels, axes
  ElementType type = ElementType::kFloat32;

  std::int64_t extent() const;  // from the first element to behind the last
};
struct CudnnWindows {
  std::vector<int> pad, stride, dilation;
  int groups = 1;
  Rounding rounding = {};  // of the operands
};
struct CudnnProblem {
  CudnnTensor src, dst;
  std::vector<int> weights;  // outputs, channels of a group, axes
  bool weights_last = false;  // in memory their channels come last
  CudnnWindows windows;
  ElementType type = ElementType::kFloat32;  // of all arrays

  std::int64_t weight_count() const;
};

// By plain loops, sums in double.
void convolve(const CudnnProblem& all, const void* src, const void* weights, double scale,
              double kept, void* dst);
void convolve_back(const CudnnProblem& all, const void* dst, const void* weights, double scale,
                   double kept, void* src);
void convolve_for_weights(const CudnnProblem& all, const void* src, const void* dst, double scale,
                          double kept, void* weights);

}  // namespace speedo::test
