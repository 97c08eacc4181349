#pragma once

#include <speedo/backend/operations.hpp>

#include "gpu/launch/queue.hpp"

namespace speedo::gpu {

// What a pass of a batch normalization multiplies and adds, per channel, in the device's memory:
//   dst = activation((src - mean) factor + offset)
//   src_grad = factor slope + shift + (src - mean) spread, slope: dst_grad through the activation
struct NormCoefficients {
  float* factor;
  float* offset;  // the forward pass' beta
  float* shift;   // 0 with fixed statistics; so is spread
  float* spread;
};

struct NormStatistics {
  const float* mean;
  const float* variance;
  const float* gamma;  // null: 1
  const float* beta;   // null: 0
};

// Stores the statistics of src in mean and variance, and the factor and the offset.
void norm_statistics(Queue& queue, const BatchNormShape& shape, const float* src,
                     const NormStatistics& from, float* mean, float* variance,
                     const NormCoefficients& to);
// The factor and the offset of statistics that are given.
void norm_fixed_statistics(Queue& queue, const BatchNormShape& shape, const NormStatistics& from,
                           const NormCoefficients& to);
void norm_forward(Queue& queue, const BatchNormShape& shape, const float* mean,
                  const NormCoefficients& by, const float* src, float* dst);

// Adds to the parameters' gradients, and sets shift and spread; the offset is the forward pass'.
void norm_gradient_sums(Queue& queue, const BatchNormShape& shape, const BatchNormGradient& arrays,
                        const NormCoefficients& of);
void norm_backward(Queue& queue, const BatchNormShape& shape, const BatchNormGradient& arrays,
                   const NormCoefficients& by);

}  // namespace speedo::gpu
