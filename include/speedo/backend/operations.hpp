#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <speedo/backend/layout.hpp>
#include <speedo/backend/unary_op.hpp>
#include <speedo/base/result.hpp>

namespace speedo {

// Operations that keep descriptors, scratch memory or masks between calls. A layer makes one per
// shape through its Backend and keeps it. Pointers are the backend's; sizes are fixed at creation.
// Arrays have the layouts that the shape names; statistics, weights and biases are always plain.

// What an operation is made of, for `speedo time`.
struct OperationInfo {
  std::string kernel;              // "onednn jit:avx512_core", "openblas gemm", "avx512", ...
  double forward_flops = 0.0;      // multiplications and additions; 0: not counted
  double backward_flops = 0.0;     // data and weights together
  std::int64_t workspace_bytes = 0;  // what it keeps between calls, shared scratch aside
};
class Operation {
 public:
  virtual ~Operation() = default;
  virtual OperationInfo info() const = 0;
  // Takes the memory that it keeps between calls; otherwise the first pass does, and it must fit.
  // Error: kFull, with the bytes asked for.
  virtual Result<void> take_memory() { return {}; }
};

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
  // src may be plain though dst is not, where Backend::convolves_plain() says so.
  Layout src_layout, dst_layout;
  // Caffe's Deconvolution: forward() is what backward_data() is of mirrored(), and the other way
  // round. weights: channels x outputs/groups x kernel... .
  bool transposed = false;
  // Applied to dst before it is stored; one that Backend::fuses(). backward_...() get the gradient
  // by dst before the activation, as an in-place layer leaves it.
  std::optional<UnaryOp> activation;
  bool trains = true;  // whether the backward functions will be called
};

// The same weights between the same arrays, of which each takes the other's part; transposed if
// `shape` is not. It has no activation.
inline ConvolutionShape mirrored(ConvolutionShape shape) {
  std::swap(shape.channels, shape.outputs);
  std::swap(shape.src_size, shape.dst_size);
  std::swap(shape.src_layout, shape.dst_layout);
  shape.transposed = !shape.transposed;
  shape.activation.reset();
  return shape;
}

class Convolution : public Operation {
 public:
  virtual void forward(const float* src, const float* weights, const float* bias, float* dst) = 0;
  // Overwrites src_grad.
  virtual void backward_data(const float* dst_grad, const float* weights, float* src_grad) = 0;
  // Adds to weights_grad and bias_grad; either may be null.
  virtual void backward_weights(const float* src, const float* dst_grad, float* weights_grad,
                                float* bias_grad) = 0;
};

// 2-d pooling of batch x channels images. dst_size follows Caffe's rule (the layer
// computes it); windows are clipped as Caffe clips them, and none lies wholly outside.
struct PoolingShape {
  enum class Method { kMax, kAverage };
  Method method = Method::kMax;
  std::int64_t batch = 0, channels = 0;
  std::int64_t src_h = 0, src_w = 0, dst_h = 0, dst_w = 0;
  std::int64_t kernel_h = 0, kernel_w = 0, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;
  Layout layout;
  bool trains = true;  // whether backward() will be called
};

class Pooling : public Operation {
 public:
  // `mask`: null, or dst-sized floats that receive the index within the plane of each maximum; only
  // with a plain layout.
  virtual void forward(const float* src, float* dst, float* mask) = 0;
  // Overwrites src_grad. src and dst: what Backend::backward_reads() says is read, else anything.
  // Requires (kMax): forward() ran before on the same src.
  virtual void backward(const float* src, const float* dst, const float* dst_grad,
                        float* src_grad) = 0;
};

// Local response normalization (Krizhevsky 2012), Caffe's two forms:
// kAcross: dst = src * (k + alpha/size * sum over `size` channels of src^2) ^ -beta;
// kWithin: dst = src * (1 + alpha * mean of src^2 over size x size positions) ^ -beta, where the
// mean is average pooling's, whose windows count the padding.
struct LrnShape {
  enum class Region { kAcross, kWithin };
  Region region = Region::kAcross;
  std::int64_t batch = 0, channels = 0, h = 0, w = 0;
  std::int64_t size = 5;  // odd
  float alpha = 1.0F, beta = 0.75F, k = 1.0F;
  Layout layout;
  bool trains = true;  // whether backward() will be called
};

class Lrn : public Operation {
 public:
  virtual void forward(const float* src, float* dst) = 0;
  // Overwrites src_grad. src and dst: what Backend::backward_reads() says is read, else anything.
  // Requires: forward() ran before on the same src.
  virtual void backward(const float* src, const float* dst, const float* dst_grad,
                        float* src_grad) = 0;
};

// Batch normalization (Ioffe and Szegedy 2015) of each channel over batch and positions, followed
// by a scale and a shift of the channel (Caffe's BatchNorm and Scale) and an activation, where
// there are.
struct BatchNormShape {
  std::int64_t batch = 0, channels = 0, spatial = 0;
  float epsilon = 1e-5F;
  std::optional<UnaryOp> activation;  // one that Backend::fuses()
  Layout layout;
  bool is_fixed = false;     // the statistics are given and do not depend on src
  bool trains = true;        // whether backward() will be called
  bool trains_gamma = true;  // whether it will be asked for gamma_grad
  // Another array is added before the activation; see BatchNorm::add_next(). One that
  // Backend::adds(). backward() gets the gradient by what the activation was applied to.
  bool adds = false;
};

// The arrays of BatchNorm::backward(). gamma null: 1.
struct BatchNormGradient {
  // What backward_reads() says is read, else anything.
  const float* src = nullptr;
  const float* dst = nullptr;
  const float* dst_grad = nullptr;
  const float* mean = nullptr;
  const float* variance = nullptr;
  const float* gamma = nullptr;
  float* src_grad = nullptr;    // overwritten; may equal dst_grad
  float* gamma_grad = nullptr;  // added to; null: not asked for
  float* beta_grad = nullptr;   // likewise
};

// gamma null: 1; beta null: 0. mean and variance: per channel, the variance divided by the count.
class BatchNorm : public Operation {
 public:
  // By the statistics of src, which it stores in mean and variance. dst may equal src only if
  // shape.trains is false. Requires: !shape.is_fixed.
  virtual void forward(const float* src, const float* gamma, const float* beta, float* mean,
                       float* variance, float* dst) = 0;
  // By given statistics; dst may equal src. Requires: shape.is_fixed.
  virtual void forward_fixed(const float* src, const float* mean, const float* variance,
                             const float* gamma, const float* beta, float* dst) = 0;
  // The next forward function adds this array, which dst may be. Requires: shape.adds.
  virtual void add_next(const float* /*addend*/) {}
  // Requires: the forward function ran before, with the same beta.
  virtual void backward(const BatchNormGradient& gradient) = 0;
};

}  // namespace speedo
