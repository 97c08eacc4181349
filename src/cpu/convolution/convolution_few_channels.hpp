#pragma once

#include <memory>

#include "cpu/convolution/convolution_kernels.hpp"

namespace speedo::cpu {

// Backward passes of convolutions channels last whose channels fill vectors badly, as LeNet's 20.
// There the columns of im2col, channels times taps, are long; they are made for a few positions at
// a time, which stay in the caches, and the products' vectors lie along them.
bool few_channels_serves(const ConvolutionShape& shape, ConvolutionPass pass,
                         const Context& context);

// Requires: few_channels_serves() for each pass asked for.
std::unique_ptr<ConvolutionKernels> make_few_channels_kernels(const ConvolutionShape& shape,
                                                        const Context& context);

}  // namespace speedo::cpu
