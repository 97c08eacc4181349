#pragma once

#include <memory>

#include "cpu/convolution/convolution_kernels.hpp"

namespace speedo::cpu {

// Convolutions in plain order over one or two axes that make each channel of one channel: as many
// groups as channels, and as outputs. Backward by data they are bilinear upsampling.
bool by_channel_serves(const ConvolutionShape& shape, const Context& context);

// Requires: by_channel_serves().
std::unique_ptr<ConvolutionKernels> make_by_channel_kernels(const ConvolutionShape& shape,
                                                            const Context& context);

}  // namespace speedo::cpu
