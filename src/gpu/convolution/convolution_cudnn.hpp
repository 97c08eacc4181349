#pragma once

#include <memory>

#include "gpu/convolution/convolution.hpp"
#include "gpu/convolution/convolution_kernels.hpp"

namespace speedo::gpu {

// Convolutions by cuDNN.
std::unique_ptr<ConvolutionKernels> make_cudnn_kernels(const ConvolutionShape& shape,
                                                       const ConvolutionContext& context);

}  // namespace speedo::gpu
