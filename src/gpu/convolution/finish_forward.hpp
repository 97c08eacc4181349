#pragma once

#include "gpu/convolution/convolution_pass.hpp"
#include "gpu/elementwise/channels.hpp"

namespace speedo::gpu {

// What is left of a forward pass when the windows are computed, in place and queued: the bias, null
// if there is none, and the shape's activation.
inline void finish_forward(Queue& queue, const ConvolutionShape& shape, const float* bias,
                           float* dst) {
  if (bias == nullptr && !shape.activation) return;
  scale_channels(queue, {dst_array(shape), shape.dst_layout}, {nullptr, bias, shape.activation},
                 dst, dst);
}

}  // namespace speedo::gpu
