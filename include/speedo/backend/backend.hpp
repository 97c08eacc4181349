#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include <speedo/backend/buffer.hpp>
#include <speedo/backend/layout.hpp>
#include <speedo/backend/operations.hpp>
#include <speedo/backend/unary_op.hpp>
#include <speedo/base/result.hpp>

namespace speedo {

enum class Op { kNone, kTranspose };

// One parameter range's view of an SGD step; see Backend::sgd_update.
struct SgdStep {
  float rate = 0.0F;  // learning rate x lr_mult
  float momentum = 0.0F;
  float scale = 1.0F;  // applied to the gradient first: clip factor / iter_size
  float l2 = 0.0F;     // added: l2 x weight
  float l1 = 0.0F;     // added: l1 x sign(weight), sign(0) = 0
};

// Memory, order and the operations of one device. Pointers are the backend's own memory; element
// counts are non-negative; arrays named differently do not overlap unless a comment says they may.
//
// Operations may run later than the call, in call order (a stream); synchronize() waits for all.
// download() waits for what it copies. Only what returns a Result can fail at run time.
// Thread safety: one thread at a time; make one instance per thread.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;

  // Memory. allocate: zero-filled, 64-byte aligned. Error: kFull, with the bytes asked for.
  virtual Result<Buffer> allocate(std::size_t bytes) = 0;
  virtual void upload(float* target, std::span<const float> source) = 0;
  virtual void download(std::span<float> target, const float* source) = 0;
  virtual void synchronize() = 0;
  virtual void copy(std::int64_t n, const float* x, float* y) = 0;  // x may equal y
  virtual void fill(std::int64_t n, float value, float* x) = 0;

  // C (m x n) = alpha op(A) op(B) + beta C, row major, without gaps. op(A) is m x k, op(B) is k x
  // n.
  struct GemmShape {
    std::int64_t m, n, k;
  };
  virtual void gemm(Op a_op, Op b_op, GemmShape shape, float alpha, const float* a, const float* b,
                    float beta, float* c) = 0;

  // Vectors of n elements. `y` may equal `x` in all elementwise operations.
  virtual void axpby(std::int64_t n, float alpha, const float* x, float beta, float* y) = 0;
  virtual void multiply(std::int64_t n, const float* a, const float* b, float* y) = 0;
  virtual void square(std::int64_t n, const float* x, float* y) = 0;
  virtual void power(std::int64_t n, const float* x, float exponent, float* y) = 0;
  // y = a / b, elementwise.
  virtual void divide(std::int64_t n, const float* a, const float* b, float* y) = 0;
  virtual void add_scalar(std::int64_t n, float value, float* y) = 0;
  // Reductions wait for the result and sum in double.
  virtual double dot(std::int64_t n, const float* x, const float* y) = 0;
  virtual double sum_abs(std::int64_t n, const float* x) = 0;
  // Whether no element is infinite or NaN.
  virtual bool all_finite(std::int64_t n, const float* x) = 0;

  // Rows x columns matrices, row major: y[r][c] += bias[c]; sum[c] += sum over r of x[r][c].
  virtual void add_row(std::int64_t rows, std::int64_t columns, const float* bias, float* y) = 0;
  virtual void sum_rows(std::int64_t rows, std::int64_t columns, const float* x, float* sum) = 0;

  // Copies `rows` pieces of `columns` elements between matrices with other row strides (in
  // elements): what Concat and Slice do.
  virtual void copy_rows(std::int64_t rows, std::int64_t columns, const float* source,
                         std::int64_t source_stride, float* target, std::int64_t target_stride) = 0;

  // Layouts. What suits all these convolutions of a net best; kPlain where nothing else is offered.
  virtual LayoutKind preferred_layout(std::span<const ConvolutionShape> convolutions) const = 0;
  // Whether such a convolution may read a plain src though its dst is not plain.
  virtual bool convolves_plain(const ConvolutionShape& shape) const = 0;
  // Copies between layouts. Padding becomes zero.
  virtual void reorder(const ArrayShape& shape, const float* source, Layout from, float* target,
                       Layout to) = 0;

  // Per-channel arithmetic on an array of any layout: y = gamma[c] x + beta[c]; gamma null: 1, beta
  // null: 0. y may equal x.
  virtual void scale_channels(const ArrayShape& shape, Layout layout, const float* gamma,
                              const float* beta, const float* x, float* y) = 0;
  // gamma_grad[c] += sum of y_grad x; beta_grad[c] += sum of y_grad. Either may be null (x too,
  // without gamma_grad).
  virtual void sum_channels(const ArrayShape& shape, Layout layout, const float* x,
                            const float* y_grad, float* gamma_grad, float* beta_grad) = 0;
  // y = x > 0 ? x : slope[c] x, Caffe's PReLU; y may equal x.
  virtual void prelu_forward(const ArrayShape& shape, Layout layout, const float* slope,
                             const float* x, float* y) = 0;
  // x_grad may equal y_grad, or be null; slope_grad[c] += ..., or null.
  virtual void prelu_backward(const ArrayShape& shape, Layout layout, const float* slope,
                              const float* x, const float* y_grad, float* x_grad,
                              float* slope_grad) = 0;

  // y = f(x); y may equal x.
  virtual void map(const UnaryOp& op, std::int64_t n, const float* x, float* y) = 0;
  // x_grad = f'(x) y_grad; x_grad may equal y_grad. x and y: what backward_reads(op) says is read,
  // else anything.
  virtual void map_backward(const UnaryOp& op, std::int64_t n, const float* x, const float* y,
                            const float* y_grad, float* x_grad) = 0;

  // Dropout. Element i is kept when mix64(seed + i) >> 40 scaled to [0, 1) is >= ratio, so masks
  // are the same on every device. Kept elements get `scale` = 1/(1-ratio); mask receives scale or
  // 0.
  virtual void dropout_mask(std::int64_t n, float ratio, std::uint64_t seed, float* mask) = 0;

  // Softmax over the middle axis of outer x classes x inner; x may equal y. Backward overwrites.
  struct SoftmaxShape {
    std::int64_t outer, classes, inner;
  };
  virtual void softmax_forward(SoftmaxShape shape, const float* x, float* y) = 0;
  virtual void softmax_backward(SoftmaxShape shape, const float* y, const float* y_grad,
                                float* x_grad) = 0;

  // Softmax cross-entropy on probabilities. `labels`: outer x inner. Waits for the result.
  struct SoftmaxLoss {
    double sum = 0.0;             // of -log(max(p[label], FLT_MIN)) over labels not ignored
    std::int64_t valid = 0;       // how many those are
    std::int64_t bad_index = -1;  // first label outside 0..classes-1, else -1 (then sum is void)
    float bad_label = 0.0F;
  };
  virtual SoftmaxLoss softmax_loss(SoftmaxShape shape, const float* probability,
                                   const float* labels, bool has_ignore, int ignore_label) = 0;
  // grad = scale * (probability - onehot(label)), 0 where the label is ignored. Requires: labels
  // that softmax_loss() found no fault with.
  virtual void softmax_loss_backward(SoftmaxShape shape, const float* probability,
                                     const float* labels, bool has_ignore, int ignore_label,
                                     float scale, float* grad) = 0;

  // Elementwise maximum with Caffe's ties: y = a > b ? a : b and mask = index of the winner, where
  // `first` says that a is input 0 (otherwise a is y so far and keeps its mask unless b is
  // greater).
  virtual void max_forward(std::int64_t n, const float* a, const float* b, bool first,
                           float b_index, float* mask, float* y) = 0;
  // x_grad = mask == index ? y_grad : 0.
  virtual void max_backward(std::int64_t n, const float* mask, float index, const float* y_grad,
                            float* x_grad) = 0;

  // Turns the gradient into the update in place, momentum SGD as in Caffe:
  // g = scale g + l2 w + l1 sign(w); h = momentum h + rate g; g = h.
  virtual void sgd_update(std::int64_t n, const SgdStep& step, const float* weights, float* history,
                          float* grad) = 0;
  // sgd_update(), then weights -= grad.
  virtual void sgd_step(std::int64_t n, const SgdStep& step, float* weights, float* history,
                        float* grad) = 0;

  // Operations with state; see operations.hpp. Error: kFull when what they need cannot be counted.
  virtual Result<std::unique_ptr<Convolution>> make_convolution(const ConvolutionShape& shape) = 0;
  virtual Result<std::unique_ptr<Pooling>> make_pooling(const PoolingShape& shape) = 0;
  virtual Result<std::unique_ptr<Lrn>> make_lrn(const LrnShape& shape) = 0;
  virtual Result<std::unique_ptr<BatchNorm>> make_batch_norm(const BatchNormShape& shape) = 0;

  // Scratch memory that the operations made so far share. It is only counted until it is provided,
  // or the first of them runs.
  virtual std::int64_t scratch_bytes() const = 0;
  // Takes it, so that no operation made so far can lack it. Error: kFull; it stays counted.
  virtual Result<void> provide_scratch() = 0;
};

}  // namespace speedo
