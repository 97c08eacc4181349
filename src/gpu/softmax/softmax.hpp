#pragma once

#include <speedo/backend/backend.hpp>

#include "gpu/launch/queue.hpp"

namespace speedo::gpu {

// As Backend has them, queued.
void softmax_forward(Queue& queue, Backend::SoftmaxShape shape, const float* x, float* y);
void softmax_backward(Queue& queue, Backend::SoftmaxShape shape, const float* y,
                      const float* y_grad, float* x_grad);

}  // namespace speedo::gpu
