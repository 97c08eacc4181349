#pragma once

#include <memory>

#include "gpu/convolution/convolution.hpp"
#include "gpu/convolution/convolution_engine.hpp"

namespace speedo::gpu {

// Any convolution, by im2col and matrix products, a few samples at a time; arrays that are not
// plain pass through copies.
std::unique_ptr<ConvolutionEngine> make_im2col_engine(const ConvolutionShape& shape,
                                                      const ConvolutionContext& context);

}  // namespace speedo::gpu
