#pragma once

#include <memory>
#include <span>

#include <speedo/backend/operations.hpp>
#include <speedo/base/result.hpp>

#include "cpu/convolution/convolution_kernels.hpp"

namespace speedo::cpu {

// Each pass of the convolution by the kernels that serve it best: oneDNN where it was built in and
// has one for the shape and its layouts, else matrix products. The workplace outlives it.
std::unique_ptr<Convolution> make_convolution(const ConvolutionShape& shape,
                                              const Workplace& workplace);

// Backend::preferred_layout() and convolves_plain().
LayoutKind preferred_layout(std::span<const ConvolutionShape> convolutions,
                            const Workplace& workplace);
bool convolves_plain(const ConvolutionShape& shape, const Workplace& workplace);

}  // namespace speedo::cpu
