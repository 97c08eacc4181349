#pragma once

#include <cstdint>

namespace speedo::cpu {

// Rows of `block` channels, one after another (block 1: numbers of one channel). Sums run in floats
// over `chunk` rows and in doubles over chunks.
struct NormRows {
  std::int64_t rows, block, chunk;
  bool has_relu;
  float slope;  // of the ReLU
};

// Writes each channel's mean and sum of squared differences from it.
void norm_moments(const NormRows& r, const float* x, double* mean, double* squares);

// Merges the moments of `more` into those of n rows (Chan, Golub and LeVeque 1979).
struct NormMoments {
  double rows;
  const double *mean, *squares;  // of each channel
};
void norm_merge(std::int64_t block, double n, const NormMoments& more, double* mean,
                double* squares);

// y = relu(factor (x - mean) + offset), the coefficients of each channel. Arrays may be read 15
// floats beyond their end.
struct ChannelAffine {
  const float *mean, *factor, *offset;
};
void norm_forward(const NormRows& r, const ChannelAffine& k, const float* x, float* y);

// Writes each channel's sums of g and of g (x - mean), where g is y_grad before the ReLU. What that
// let through is told by y, or if y is null computed again from x: cheaper than reading y.
struct NormArrays {
  const float *x, *y, *y_grad;
};
void norm_gradient_sums(const NormRows& r, const ChannelAffine& k, const NormArrays& from,
                        double* sums, double* products);

// x_grad = factor g + slope (x - mean) + shift.
struct NormGradient {
  const float *slope, *shift;
};
void norm_backward(const NormRows& r, const ChannelAffine& k, const NormGradient& gradient,
                   const NormArrays& from, float* x_grad);

}  // namespace speedo::cpu
