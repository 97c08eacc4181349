#pragma once

#include <speedo/backend/backend.hpp>

#include "cpu/thread_pool.hpp"

namespace speedo::cpu {

// Normalization of the rows of a matrix; contracts as in Backend. The same result with any number
// of threads.

void normalize_rows(ThreadPool& pool, const Backend::RowNorm& norm, const float* x, float* y,
                    float* deviation);

// The arrays of normalize_rows_backward().
struct RowGradient {
  const float* y;
  const float* deviation;
  const float* y_grad;
  float* x_grad;
};
void normalize_rows_backward(ThreadPool& pool, const Backend::RowNorm& norm,
                             const RowGradient& gradient);

}  // namespace speedo::cpu
