#pragma once

#include <memory>
#include <span>

#include <speedo/backend/operations.hpp>
#include <speedo/base/result.hpp>

#include "gpu/cudnn/dnn.hpp"
#include "gpu/gemm/gemm.hpp"

namespace speedo::gpu {

// What convolutions are computed with; all outlives them.
struct ConvolutionContext {
  GemmContext products;
  Dnn& dnn;
};

// What suits these convolutions of a net: channels last where operands are rounded, as the units
// that multiply such numbers read them so, and cuDNN would copy plain arrays in each pass. In
// bfloat16 arrays are of that too, as they are half as long and most operations wait for memory,
// but not where most of the work has numbers of outputs that are no multiples of 8.
LayoutKind preferred_layout(std::span<const ConvolutionShape> convolutions, Arithmetic arithmetic);

// As Backend::make_convolution(). Error: kInternal, what the library says.
Result<std::unique_ptr<Convolution>> make_convolution(const ConvolutionShape& shape,
                                                      const ConvolutionContext& context);

}  // namespace speedo::gpu
