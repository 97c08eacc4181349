#pragma once

#include <cstdint>

namespace speedo::cpu {

// Vector kernels of convolution_single_channel.cpp, for one sample. A tap is an element of the
// window; the weights lie as [tap][single_channel_width(outputs)], 64-byte aligned, padded with
// zeros.
struct SingleChannelShape {
  std::int64_t src_width, dst_height, dst_width, outputs;
  std::int64_t kernel_height, kernel_width, stride_y, stride_x;

  std::int64_t taps() const { return kernel_height * kernel_width; }
  std::int64_t src_offset(std::int64_t tap) const {
    return tap / kernel_width * src_width + tap % kernel_width;
  }
};

// Output channels rounded up to whole vectors; 0 if there are more than the kernels can hold.
std::int64_t single_channel_width(std::int64_t outputs);

// dst = convolution + bias, negative results times `slope`. `bias`: as a tap's weights.
void single_channel_forward(const SingleChannelShape& shape, const float* src, const float* weights,
                  const float* bias, float slope, float* dst);
// sums += the gradients by the weights; after them, like one more tap, by the bias.
void single_channel_backward_weights(const SingleChannelShape& shape, const float* src,
                                     const float* dst_grad, float* sums);

}  // namespace speedo::cpu
