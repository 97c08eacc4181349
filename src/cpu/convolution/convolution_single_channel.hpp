#pragma once

#include <memory>

#include "cpu/convolution/convolution_kernels.hpp"

namespace speedo::cpu {

// Convolution of one channel into few, channels last: the first layer of nets for gray images.
// There oneDNN's kernels, made for whole vectors of channels, reach a quarter to a third of the
// processor's rate; these hold a vector of output channels for several positions (forward) or taps
// (weights' gradient) in registers.
bool single_channel_serves(const ConvolutionShape& shape, ConvolutionPass pass,
                           const Context& context);

// Requires: single_channel_serves() for each pass asked for.
std::unique_ptr<ConvolutionKernels> make_single_channel_kernels(const ConvolutionShape& shape,
                                                      const Context& context);

}  // namespace speedo::cpu
