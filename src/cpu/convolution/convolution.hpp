#pragma once

#include <memory>
#include <span>

#include <speedo/backend/operations.hpp>
#include <speedo/base/result.hpp>

#include "cpu/convolution/convolution_kernels.hpp"

namespace speedo::cpu {

// Each pass of the convolution by the kernels that serve it best: oneDNN where it was built in and
// has one for the shape and its layouts, else matrix products. The context outlives it.
std::unique_ptr<Convolution> make_convolution(const ConvolutionShape& shape,
                                              const Context& context);

// Backend::preferred_layout() and convolves_plain().
LayoutKind preferred_layout(std::span<const ConvolutionShape> convolutions,
                            const Context& context);
bool convolves_plain(const ConvolutionShape& shape, const Context& context);

}  // namespace speedo::cpu
