#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <speedo/backend/binary_op.hpp>
#include <speedo/backend/device.hpp>
#include <speedo/backend/device_steps.hpp>
#include <speedo/backend/element_type.hpp>
#include <speedo/backend/layout.hpp>
#include <speedo/backend/lstm_step.hpp>
#include <speedo/backend/operations.hpp>
#include <speedo/backend/reduce_op.hpp>
#include <speedo/backend/unary_op.hpp>
#include <speedo/backend/update_step.hpp>
#include <speedo/base/result.hpp>

namespace speedo {

enum class Op { kNone, kTranspose };

// What scale_channels() does to each channel: y = activation(gamma[c] x + beta[c]).
struct ChannelScale {
  const float* gamma = nullptr;  // null: 1
  const float* beta = nullptr;   // null: 0
  std::optional<UnaryOp> activation = std::nullopt;
};

// The running sums of a batch normalization and a pass that they are to know of: means and
// variances are per channel, the weight is one number.
struct RunningStatistics {
  std::int64_t channels = 0;
  float fraction = 1.0F;    // that is left of the sums and the weight
  float correction = 1.0F;  // of the pass' variance
  const float* mean = nullptr;
  const float* variance = nullptr;
  float* mean_sum = nullptr;
  float* variance_sum = nullptr;
  float* weight = nullptr;
};

// What those sums make of a channel's mean and variance: divided by the weight; zeros while that is
// zero, as nothing was seen yet.
struct RunningMeans {
  std::int64_t channels = 0;
  const float* mean_sum = nullptr;
  const float* variance_sum = nullptr;
  const float* weight = nullptr;
  float* mean = nullptr;
  float* variance = nullptr;
};

// Operations that can apply an activation to their result before it is stored; see
// Backend::fuses().
enum class Producer { kConvolution, kBatchNorm };

// The operations of one device; memory and order are its Device's. Pointers are the device's
// memory; element counts are non-negative; arrays named differently do not overlap unless a comment
// says they may. Arrays are of float32, but those whose layout says otherwise, or that are passed
// over by Elements of another type.
//
// Operations are queued on device().compute() and may run later than the call; all other arguments
// are taken by value. Those that return numbers wait for all that was queued there before. Only
// what returns a Result can fail at run time.
// Thread safety: one thread at a time; make one instance per thread.
class Backend {
 public:
  virtual ~Backend() = default;
  // For people to read; what decides is what device() and the operations say.
  virtual std::string_view name() const = 0;
  // Of its own, and always the same.
  virtual Device& device() = 0;

  virtual void copy(Elements n, const float* x, float* y) = 0;  // x may equal y
  virtual void fill(Elements n, float value, float* x) = 0;

  // C = alpha op(A) op(B) + beta C, row major, without gaps. op(A) is m x k, op(B) is k x n, C is
  // m x n.
  struct GemmShape {
    std::int64_t m, n, k;
  };
  struct Gemm {
    Op a_op, b_op;
    GemmShape shape;
    float alpha, beta;
  };
  virtual void gemm(const Gemm& product, const float* a, const float* b, float* c) = 0;

  // The families of operations on each element; what they do is in unary_op.hpp, binary_op.hpp and
  // reduce_op.hpp. y = f(x); y may equal x.
  virtual void map(const UnaryOp& op, Elements n, const float* x, float* y) = 0;
  // x_grad = f'(x) y_grad; x_grad may equal y_grad. x and y: what backward_reads(op) says is read,
  // else anything.
  virtual void map_backward(const UnaryOp& op, Elements n, const float* x, const float* y,
                            const float* y_grad, float* x_grad) = 0;
  // z = f(x, y). Requires: no winners, but of float32.
  virtual void zip(const BinaryOp& op, Elements n, const ZipArrays& arrays) = 0;
  // x_grad = f'(x) times the sum of at least one gradient, in their order. f may be left out, and y
  // then be anything; else y = f(x), which tells the slope: backward_reads(f) names dst alone.
  // Those gradients that are x_grad, if any, come first.
  virtual void sum_gradients(const std::optional<UnaryOp>& f, Elements n,
                             std::span<const float* const> gradients, const float* y,
                             float* x_grad) {
    std::size_t next = 0;
    while (next < gradients.size() && gradients[next] == x_grad) ++next;
    if (next > 1) map(affine(static_cast<float>(next)), n, x_grad, x_grad);
    if (next == 0 && gradients.size() == 1) copy(n, gradients[next++], x_grad);
    if (next == 0) {
      zip({BinaryKind::kSum}, n, {gradients[0], gradients[1], x_grad});
      next = 2;
    }
    for (; next < gradients.size(); ++next) axpby(n, 1.0F, gradients[next], 1.0F, x_grad);
    if (f) map_backward(*f, n, nullptr, y, x_grad, x_grad);
  }
  // Waits for the result; sums in double.
  virtual double reduce(ReduceOp op, Elements n, const float* x, const float* y) = 0;

  // Frequent ones by their names. y = alpha x + beta y; y is not read where beta is 0.
  void axpby(Elements n, float alpha, const float* x, float beta, float* y) {
    if (beta == 0.0F) {
      map(affine(alpha), n, x, y);
    } else {
      zip({BinaryKind::kSum, alpha, beta}, n, {x, y, y});
    }
  }
  double dot(Elements n, const float* x, const float* y) {
    return reduce(ReduceOp::kDot, n, x, y);
  }
  double sum_abs(Elements n, const float* x) {
    return reduce(ReduceOp::kAbsSum, n, x, nullptr);
  }
  bool all_finite(Elements n, const float* x) {
    return reduce(ReduceOp::kAllFinite, n, x, nullptr) != 0.0;
  }

  // Copies `rows` pieces of `columns` elements between matrices with other row strides (in
  // elements): what Concat and Slice do.
  virtual void copy_rows(std::int64_t rows, Elements columns, const float* source,
                         std::int64_t source_stride, float* target, std::int64_t target_stride) = 0;

  // Matrices whose rows follow each other without gaps.
  struct RowsShape {
    std::int64_t rows, columns;
  };
  // y[r] = scale times what reduce() makes of row r. Requires: kSum, kAbsSum or kSquareSum.
  virtual void reduce_rows(ReduceOp op, const RowsShape& shape, float scale, const float* x,
                           float* y) = 0;

  // Takes each row's mean away: y = (x - mean) / deviation, where deviation[r] is the root of the
  // row's variance (divided by the count) plus epsilon, or 1 without an epsilon. y may equal x.
  struct RowNorm {
    RowsShape shape;
    std::optional<float> epsilon;
  };
  virtual void normalize_rows(const RowNorm& norm, const float* x, float* y, float* deviation) = 0;
  // x_grad = (y_grad - mean(y_grad) - y mean(y_grad y)) / deviation, as Caffe has it, which is
  // exact for an epsilon of 0; without one y_grad - mean(y_grad). x_grad may equal y_grad.
  virtual void normalize_rows_backward(const RowNorm& norm, const float* y, const float* deviation,
                                       const float* y_grad, float* x_grad) = 0;

  // The windows of a convolution as one matrix a sample: row (channel, kernel position), column =
  // output position, 0 in the padding. All plain; outputs, groups and activation do not matter.
  virtual void unfold(const ConvolutionShape& shape, const float* src, float* matrices) = 0;
  // src = the sum, for each of its elements, of the matrices' elements that unfold() takes from it.
  virtual void fold(const ConvolutionShape& shape, const float* matrices, float* src) = 0;

  // Stochastic pooling (Zeiler and Fergus 2013) of plain images; of the shape, method and trains do
  // not matter. Of each window, the first element at which the running sum in row order reaches u
  // times the sum; the last, if none does. For output i, u is mix64(seed + i) >> 40 scaled to
  // [0, 1). Negative values have no meaning. `winners`: the index within the plane of each.
  virtual void sample_windows(const PoolingShape& shape, std::uint64_t seed, const float* src,
                              float* dst, float* winners) = 0;
  // Overwrites src_grad.
  virtual void sample_windows_backward(const PoolingShape& shape, const float* winners,
                                       const float* dst_grad, float* src_grad) = 0;
  // What sample_windows() gives on average: sum of x^2 / (FLT_MIN + sum of x) of each window.
  virtual void weigh_windows(const PoolingShape& shape, const float* src, float* dst) = 0;
  virtual void weigh_windows_backward(const PoolingShape& shape, const float* src, const float* dst,
                                      const float* dst_grad, float* src_grad) = 0;

  // Layouts. What suits all these convolutions of a net best; kPlain where nothing else is offered.
  virtual LayoutKind preferred_layout(std::span<const ConvolutionShape> convolutions) const = 0;
  // Whether such a convolution may read a plain src though its dst is not plain.
  virtual bool convolves_plain(const ConvolutionShape& shape) const = 0;
  // Copies between layouts, and so between types of elements. Padding becomes zero.
  virtual void reorder(const ArrayShape& shape, const float* source, Layout from, float* target,
                       Layout to) = 0;

  // Per-channel arithmetic on an array of any layout; y may equal x. Requires: an activation that
  // keeps zero, or an array without padding.
  virtual void scale_channels(const ChannelView& view, const ChannelScale& scale, const float* x,
                              float* y) = 0;
  // gamma_grad[c] += sum of y_grad x; beta_grad[c] += sum of y_grad. Either may be null (x too,
  // without gamma_grad).
  virtual void sum_channels(const ChannelView& view, const float* x, const float* y_grad,
                            float* gamma_grad, float* beta_grad) = 0;
  // weight = fraction weight + 1; the sums likewise, with the mean, and the variance times its
  // correction, instead of 1.
  virtual void add_to_running(const RunningStatistics& of) {
    map(affine(of.fraction, 1.0F), 1, of.weight, of.weight);
    axpby(of.channels, 1.0F, of.mean, of.fraction, of.mean_sum);
    axpby(of.channels, of.correction, of.variance, of.fraction, of.variance_sum);
  }
  // Means and variances are the sums times 1 / weight.
  virtual void read_running(const RunningMeans& of) {
    float weight = 0.0F;
    device().download(std::span<float>(&weight, 1), of.weight);
    const float scale = weight == 0.0F ? 0.0F : 1.0F / weight;
    axpby(of.channels, scale, of.mean_sum, 0.0F, of.mean);
    axpby(of.channels, scale, of.variance_sum, 0.0F, of.variance);
  }
  // y = x > 0 ? x : slope[c] x, Caffe's PReLU; y may equal x.
  virtual void prelu_forward(const ChannelView& view, const float* slope, const float* x,
                             float* y) = 0;
  // x_grad may equal y_grad, or be null; slope_grad[c] += ..., or null.
  virtual void prelu_backward(const ChannelView& view, const float* slope, const float* x,
                              const float* y_grad, float* x_grad, float* slope_grad) = 0;

  // One time step; arrays and formulas are in lstm_step.hpp.
  virtual void lstm_forward(const LstmShape& shape, const LstmForward& step) = 0;
  virtual void lstm_backward(const LstmShape& shape, const LstmBackward& step) = 0;

  // Dropout. Element i, as counted in plain order, is kept when mix64(seed + i) >> 40 scaled to
  // [0, 1) is >= ratio, so masks are the same on every device and in every layout. Kept elements
  // get `scale` = 1/(1-ratio), as the mask's type has it; mask receives scale or 0, which padding
  // gets, too.
  virtual void dropout_mask(const ChannelView& view, float ratio, std::uint64_t seed,
                            float* mask) = 0;

  // Softmax over the middle axis of outer x classes x inner; x may equal y. Backward overwrites.
  struct SoftmaxShape {
    std::int64_t outer, classes, inner;
  };
  virtual void softmax_forward(SoftmaxShape shape, const float* x, float* y) = 0;
  virtual void softmax_backward(SoftmaxShape shape, const float* y, const float* y_grad,
                                float* x_grad) = 0;

  // A loss that needs integer labels.
  struct LabelLoss {
    double sum = 0.0;        // over labels not ignored
    std::int64_t valid = 0;  // how many those are
    std::int64_t bad_index =
        -1;  // first label outside 0..classes-1, else -1 (otherwise sum is void)
    float bad_label = 0.0F;
  };
  // Softmax cross-entropy on probabilities: the sum of -log(max(p[label], FLT_MIN)). `labels`:
  // outer x inner. Waits for the result.
  virtual LabelLoss softmax_loss(SoftmaxShape shape, const float* probability, const float* labels,
                                 std::optional<int> ignored) = 0;
  // grad = scale * (probability - onehot(label)), 0 where the label is ignored. Requires: labels
  // that softmax_loss() found no fault with.
  virtual void softmax_loss_backward(SoftmaxShape shape, const float* probability,
                                     const float* labels, std::optional<int> ignored, float scale,
                                     float* grad) = 0;

  // Hinge loss of rows of scores against one label each: the sum of m, or of m^2 if `squares`,
  // where m = max(0, 1 - s x) and s is 1 for the label's class, -1 for the others. Waits for the
  // result.
  struct HingeShape {
    std::int64_t rows, classes;
    bool squares;
  };
  virtual LabelLoss hinge_loss(const HingeShape& shape, const float* scores,
                               const float* labels) = 0;
  // grad = -s scale where m > 0, else 0; if `squares`, -2 s m scale. Requires: labels that
  // hinge_loss() found no fault with.
  virtual void hinge_loss_backward(const HingeShape& shape, const float* scores,
                                   const float* labels, float scale, float* grad) = 0;

  // Cross-entropy of the sigmoids s of scores x against targets t, as they are: the sum of
  // -t log(s) - (1 - t) log(1 - s) over those whose target, cut to a whole number, is not ignored.
  // Waits for the result.
  struct SigmoidLoss {
    double sum = 0.0;
    std::int64_t valid = 0;  // how many were not ignored
  };
  virtual SigmoidLoss sigmoid_loss(std::int64_t n, const float* x, const float* target,
                                   std::optional<int> ignored) = 0;
  // grad = scale (s - t), 0 where the target is ignored.
  virtual void sigmoid_loss_backward(std::int64_t n, const float* x, const float* target,
                                     std::optional<int> ignored, float scale, float* grad) = 0;

  // Turns the gradient into the update in place, momentum SGD as in Caffe:
  // g = scale g + l2 w + l1 sign(w); h = momentum h + rate g; g = sign h.
  virtual void sgd_update(std::int64_t n, const SgdStep& step, const float* weights, float* history,
                          float* grad) = 0;
  // sgd_update(), then weights -= grad. Requires: sign is 1.
  virtual void sgd_step(std::int64_t n, const SgdStep& step, float* weights, float* history,
                        float* grad) = 0;
  // The same of the rules of update_step.hpp.
  virtual void adaptive_update(std::int64_t n, const AdaptiveStep& step, const float* weights,
                               AdaptiveHistories histories, float* grad) = 0;
  virtual void adaptive_step(std::int64_t n, const AdaptiveStep& step, float* weights,
                             AdaptiveHistories histories, float* grad) = 0;
  // The four of many ranges of arrays, which do not overlap.
  virtual void sgd_update_ranges(std::span<const UpdateRange> ranges, const SgdStep& step,
                                 const float* weights, float* history, float* grad) {
    for (const UpdateRange& range : ranges) {
      const std::int64_t at = range.first;
      sgd_update(range.count, step_of(step, range), weights + at, history + at, grad + at);
    }
  }
  virtual void sgd_step_ranges(std::span<const UpdateRange> ranges, const SgdStep& step,
                               float* weights, float* history, float* grad) {
    for (const UpdateRange& range : ranges) {
      const std::int64_t at = range.first;
      sgd_step(range.count, step_of(step, range), weights + at, history + at, grad + at);
    }
  }
  virtual void adaptive_update_ranges(std::span<const UpdateRange> ranges, const AdaptiveStep& step,
                                      const float* weights, AdaptiveHistories histories,
                                      float* grad) {
    for (const UpdateRange& range : ranges) {
      const std::int64_t at = range.first;
      adaptive_update(range.count, step_of(step, range), weights + at, advanced(histories, at),
                      grad + at);
    }
  }
  virtual void adaptive_step_ranges(std::span<const UpdateRange> ranges, const AdaptiveStep& step,
                                    float* weights, AdaptiveHistories histories, float* grad) {
    for (const UpdateRange& range : ranges) {
      const std::int64_t at = range.first;
      adaptive_step(range.count, step_of(step, range), weights + at, advanced(histories, at),
                    grad + at);
    }
  }

  // Whether such an operation can have the activation, a batch normalization also in its backward
  // pass. zip() and scale_channels() can have any.
  virtual bool fuses(Producer producer, const UnaryOp& activation) const = 0;
  // Whether such an operation can add another array to its result; see BatchNormShape::adds.
  virtual bool adds(Producer /*producer*/) const { return false; }
  // What the backward pass of such an operation reads, whatever its layout.
  virtual BackwardReads backward_reads(const PoolingShape& shape) const = 0;
  virtual BackwardReads backward_reads(const LrnShape& shape) const = 0;
  virtual BackwardReads backward_reads(const BatchNormShape& shape) const = 0;
  // Operations with state; see operations.hpp. Error: kFull when what they need cannot be counted.
  virtual Result<std::unique_ptr<Convolution>> make_convolution(const ConvolutionShape& shape) = 0;
  virtual Result<std::unique_ptr<Pooling>> make_pooling(const PoolingShape& shape) = 0;
  virtual Result<std::unique_ptr<Lrn>> make_lrn(const LrnShape& shape) = 0;
  virtual Result<std::unique_ptr<BatchNorm>> make_batch_norm(const BatchNormShape& shape) = 0;

  // Whether products round what they multiply to a range as narrow as float16's, so that losses
  // have to be scaled.
  virtual bool has_narrow_range() const { return false; }

  // Null where the host computes itself, or has to wait for each number. Error: kFull.
  virtual Result<std::unique_ptr<DeviceSteps>> make_device_steps() {
    return std::unique_ptr<DeviceSteps>();
  }

  // Scratch memory that the operations made so far share. It is only counted until it is provided,
  // or the first of them runs.
  virtual std::int64_t scratch_bytes() const = 0;
  // Takes it, so that no operation made so far can lack it. Error: kFull; it stays counted.
  virtual Result<void> provide_scratch() = 0;
};

}  // namespace speedo
