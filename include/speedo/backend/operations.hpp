#pragma once

#include <cstdint>
#include <vector>

namespace speedo {

// Operations that keep descriptors, scratch memory or masks between calls. A layer makes one per
// shape through its Backend and keeps it. Pointers are the backend's; sizes are fixed at creation.

// N-dimensional cross-correlation of one sample's channels, Caffe's Convolution.
// src: batch x channels x src_size..., dst: batch x outputs x dst_size...,
// weights: outputs x channels/groups x kernel..., bias: outputs or null.
struct ConvolutionShape {
  std::int64_t batch = 0;
  std::int64_t channels = 0;
  std::int64_t outputs = 0;
  std::int64_t groups = 1;  // divides channels and outputs
  std::vector<std::int64_t> src_size, dst_size, kernel, stride, pad,
      dilation;  // one per spatial axis
};

class Convolution {
 public:
  virtual ~Convolution() = default;
  virtual void forward(const float* src, const float* weights, const float* bias, float* dst) = 0;
  // Overwrites src_grad.
  virtual void backward_data(const float* dst_grad, const float* weights, float* src_grad) = 0;
  // Adds to weights_grad and bias_grad; either may be null.
  virtual void backward_weights(const float* src, const float* dst_grad, float* weights_grad,
                                float* bias_grad) = 0;
};

// 2-d pooling of `planes` = batch x channels images. dst_size follows Caffe's rule (the layer
// computes it); windows are clipped as Caffe clips them, and none lies wholly outside.
struct PoolingShape {
  enum class Method { kMax, kAverage };
  Method method = Method::kMax;
  std::int64_t planes = 0;
  std::int64_t src_h = 0, src_w = 0, dst_h = 0, dst_w = 0;
  std::int64_t kernel_h = 0, kernel_w = 0, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;
};

class Pooling {
 public:
  virtual ~Pooling() = default;
  // `mask`: null, or dst-sized floats that receive the index within the plane of each maximum.
  virtual void forward(const float* src, float* dst, float* mask) = 0;
  // Overwrites src_grad. Requires (kMax): forward() ran before on the same src.
  virtual void backward(const float* dst_grad, float* src_grad) = 0;
};

// Local response normalization across channels (Krizhevsky 2012), Caffe's form:
// dst = src * (k + alpha/size * sum over `size` channels of src^2) ^ -beta.
struct LrnShape {
  std::int64_t batch = 0, channels = 0, spatial = 0;
  std::int64_t size = 5;  // odd
  float alpha = 1.0F, beta = 0.75F, k = 1.0F;
};

class Lrn {
 public:
  virtual ~Lrn() = default;
  virtual void forward(const float* src, float* dst) = 0;
  // Overwrites src_grad. Requires: forward() ran before on the same src.
  virtual void backward(const float* src, const float* dst, const float* dst_grad,
                        float* src_grad) = 0;
};

}  // namespace speedo
