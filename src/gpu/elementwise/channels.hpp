#pragma once

#include <speedo/backend/backend.hpp>

#include "gpu/launch/queue.hpp"

namespace speedo::gpu {

// Arithmetic per channel, as Backend has it, queued.

void scale_channels(Queue& queue, const ChannelView& view, const ChannelScale& scale,
                    const float* x, float* y);
void sum_channels(Queue& queue, const ChannelView& view, const float* x, const float* y_grad,
                  float* gamma_grad, float* beta_grad);
void prelu_forward(Queue& queue, const ChannelView& view, const float* slope, const float* x,
                   float* y);
struct PreluGradient {
  const float* slope;
  const float* x;
  const float* y_grad;
  float* x_grad;      // may equal y_grad, or be null
  float* slope_grad;  // added to, or null
};
void prelu_backward(Queue& queue, const ChannelView& view, const PreluGradient& arrays);

}  // namespace speedo::gpu
