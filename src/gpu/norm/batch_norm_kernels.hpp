#pragma once

#include <speedo/backend/operations.hpp>

#include "gpu/launch/queue.hpp"

namespace speedo::gpu {

// What a pass of a batch normalization multiplies and adds, per channel, in the device's memory:
//   dst = activation((src - mean) factor + offset + addend, if any)
//   src_grad = factor slope + shift + (src - mean) spread, slope: dst_grad through the activation
struct NormCoefficients {
  float* factor;
  float* offset;  // the forward pass' beta
  float* shift;   // 0 with fixed statistics; so is spread
  float* spread;
};

struct NormParameters {
  const float* gamma;  // null: 1
  const float* beta;   // null: 0
};

struct NormStatistics {
  float* mean;
  float* variance;
};

// Stores the statistics of src, and the factor and the offset.
void norm_statistics(Queue& queue, const BatchNormShape& shape, const float* src,
                     const NormParameters& from, const NormStatistics& to,
                     const NormCoefficients& coefficients);
// The factor and the offset of a variance that is given.
void norm_fixed_statistics(Queue& queue, const BatchNormShape& shape, const float* variance,
                           const NormParameters& from, const NormCoefficients& coefficients);
struct NormSource {
  const float* src;
  const float* addend;  // null: none
};
void norm_forward(Queue& queue, const BatchNormShape& shape, const NormSource& of,
                  const float* mean, const NormCoefficients& by, float* dst);

// Adds to the parameters' gradients, and sets shift and spread; the offset is the forward pass'.
void norm_gradient_sums(Queue& queue, const BatchNormShape& shape, const BatchNormGradient& arrays,
                        const NormCoefficients& of);
void norm_backward(Queue& queue, const BatchNormShape& shape, const BatchNormGradient& arrays,
                   const NormCoefficients& by);

}  // namespace speedo::gpu
