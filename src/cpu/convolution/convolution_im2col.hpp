#pragma once

#include <memory>

#include "cpu/convolution/convolution_kernels.hpp"

namespace speedo::cpu {

// Any convolution, by im2col and matrix products. Samples are divided over threads; where the
// output is small, several samples share one product, which would otherwise mostly pack its
// operands. Arrays that are not plain pass through plain copies, a few samples at a time.
std::unique_ptr<ConvolutionKernels> make_im2col_kernels(const ConvolutionShape& shape,
                                                        const Context& context);

}  // namespace speedo::cpu
