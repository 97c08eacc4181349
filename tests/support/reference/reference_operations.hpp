#pragma once

#include <memory>

#include <speedo/backend/operations.hpp>

#include "support/reference/rounding.hpp"

namespace speedo {

// The operations with state of the reference backend, in plain loops with double sums.
BackwardReads reference_backward_reads(const BatchNormShape& shape);

std::unique_ptr<Convolution> make_reference_convolution(const ConvolutionShape& shape);
std::unique_ptr<Pooling> make_reference_pooling(const PoolingShape& shape);
std::unique_ptr<Lrn> make_reference_lrn(const LrnShape& shape);
// `rounded` makes the means.
std::unique_ptr<BatchNorm> make_reference_batch_norm(const BatchNormShape& shape, Rounding rounded);

}  // namespace speedo
