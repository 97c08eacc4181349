#pragma once

#include <memory>

#include "gpu/convolution/convolution.hpp"
#include "gpu/convolution/convolution_engine.hpp"

namespace speedo::gpu {

// Convolutions whose windows are one element, of every position: products of matrices that are the
// arrays themselves, plain or channels last. Other shapes it does not serve.
std::unique_ptr<ConvolutionEngine> make_product_engine(const ConvolutionShape& shape,
                                                       const ConvolutionContext& context);

}  // namespace speedo::gpu
