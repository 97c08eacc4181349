#pragma once

#include <speedo/backend/backend.hpp>

#include "gpu/launch/queue.hpp"

namespace speedo::gpu {

// Sums of rows and their normalisation, as Backend has them, queued.

void reduce_rows(Queue& queue, ReduceOp op, const Backend::RowsShape& shape, float scale,
                 const float* x, float* y);
void normalize_rows(Queue& queue, const Backend::RowNorm& norm, const float* x, float* y,
                    float* deviation);
struct RowNormGradient {
  const float* y;
  const float* deviation;
  const float* y_grad;
  float* x_grad;  // may equal y_grad
};
void normalize_rows_backward(Queue& queue, const Backend::RowNorm& norm,
                             const RowNormGradient& arrays);

}  // namespace speedo::gpu
