#pragma once

#include <memory>

#include "gpu/convolution/convolution.hpp"
#include "gpu/convolution/convolution_engine.hpp"

namespace speedo::gpu {

// Convolutions by cuDNN.
std::unique_ptr<ConvolutionEngine> make_cudnn_engine(const ConvolutionShape& shape,
                                                     const ConvolutionContext& context);

}  // namespace speedo::gpu
