#pragma once

#include <memory>

#include "cpu/convolution/convolution_kernels.hpp"

namespace speedo::cpu {

// Backward passes of convolutions channels last whose channels fill vectors badly, as LeNet's 20.
// There the columns of im2col, channels times taps, are long; they are made for a few positions at
// a time, which stay in the caches, and the products' vectors lie along them.
bool narrow_serves(const ConvolutionShape& shape, ConvolutionPass pass, const Workplace& workplace);

// Requires: narrow_serves() for each pass asked for.
std::unique_ptr<ConvolutionKernels> make_narrow_kernels(const ConvolutionShape& shape,
                                                        const Workplace& workplace);

}  // namespace speedo::cpu
