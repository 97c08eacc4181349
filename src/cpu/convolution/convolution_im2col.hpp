#pragma once

#include <memory>

#include "cpu/convolution/convolution_kernels.hpp"

namespace speedo::cpu {

// Any convolution, by im2col and matrix products. Samples are divided over threads; where the
// output is small, several samples share one product, which would otherwise mostly pack its
// operands. Arrays that are not plain pass through plain copies, a few samples at a time.
// They serve every pass of every shape.
std::unique_ptr<ConvolutionKernels> make_im2col_kernels(const ConvolutionShape& shape,
                                                        const Context& context);

// Whether they were measured to be the fastest: gradients of weights that no cache holds, over so
// few positions that each sample's are soon added. oneDNN's kernels for AVX2 read and write the
// weights a few positions at a time.
bool im2col_excels(const ConvolutionShape& shape, ConvolutionPass pass);

}  // namespace speedo::cpu
