#pragma once

#include <memory>

#include "cpu/convolution/convolution_kernels.hpp"

namespace speedo::cpu {

// Convolutions whose only window is the whole image, as an inner product's in a net that was made
// convolutional, or (transposed) the first of a generator: one matrix product over all samples.
bool whole_image_serves(const ConvolutionShape& shape, const Context& context);

// Requires: whole_image_serves(). They serve every pass.
std::unique_ptr<ConvolutionKernels> make_whole_image_kernels(const ConvolutionShape& shape,
                                                             const Context& context);

}  // namespace speedo::cpu
