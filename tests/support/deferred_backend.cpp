#include "support/deferred_backend.hpp"

#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace speedo {
namespace {

// Puts calls of an object into the order of a device: arguments by value, arrays by where they
// really lie.
template <class Object>
class DeferredCalls {
 public:
  DeferredCalls(DeferredDevice& device, std::shared_ptr<Object> object)
      : device_(device), object_(std::move(object)) {}

  Object& object() const { return *object_; }

  template <class Method, class... Arguments>
  void queue(Method method, Arguments... arguments) {
    queue_real(method, real(arguments)...);
  }

  // The result of a call, and of all before it.
  template <class Value, class Method, class... Arguments>
  Value value(Method method, Arguments... arguments) {
    Value value{};
    queue([&value, method](Object& object,
                           auto... now) { value = std::invoke(method, object, now...); },
          arguments...);
    device_.wait(device_.record(device_.compute()));
    return value;
  }

 private:
  template <class Method, class... Arguments>
  void queue_real(Method method, Arguments... arguments) {
    device_.queue(device_.compute(), [object = object_, method, arguments...] {
      std::invoke(method, *object, arguments...);
    });
  }
  float* real(const float* array) { return device_.real(array); }
  float* real(float* array) { return device_.real(array); }
  ZipArrays real(const ZipArrays& a) { return {real(a.x), real(a.y), real(a.z), real(a.winners)}; }
  ChannelScale real(const ChannelScale& s) { return {real(s.gamma), real(s.beta), s.activation}; }
  AdaptiveHistories real(const AdaptiveHistories& h) { return {real(h.first), real(h.second)}; }
  BatchNormGradient real(const BatchNormGradient& g) {
    return {real(g.src),   real(g.dst),      real(g.dst_grad),   real(g.mean),     real(g.variance),
            real(g.gamma), real(g.src_grad), real(g.gamma_grad), real(g.beta_grad)};
  }
  LstmForward real(const LstmForward& s) {
    return {real(s.cont), real(s.c_before), real(s.sums), real(s.gates), real(s.c), real(s.h)};
  }
  LstmBackward real(const LstmBackward& s) {
    return {real(s.c_before), real(s.gates),         real(s.c),        real(s.c_grad),
            real(s.h_grad),   real(s.c_before_grad), real(s.sums_grad)};
  }
  template <class Value>
  const Value& real(const Value& value) {
    return value;
  }

  DeferredDevice& device_;
  std::shared_ptr<Object> object_;  // which queued calls need as long as they are queued
};

template <class Kind>
class DeferredOperation : public Kind {
 public:
  DeferredOperation(DeferredDevice& device, std::unique_ptr<Kind> inner, BackwardReads reads)
      : reads_(reads), calls_(device, std::move(inner)) {}
  OperationInfo info() const override { return calls_.object().info(); }
  Result<void> take_memory() override { return calls_.object().take_memory(); }

 protected:
  template <class... Arguments>
  void queue(Arguments... arguments) {
    calls_.queue(arguments...);
  }

  // What the backward pass reads; what it does not may be anything.
  const BackwardReads reads_;

 private:
  DeferredCalls<Kind> calls_;
};

class DeferredConvolution final : public DeferredOperation<Convolution> {
 public:
  using DeferredOperation::DeferredOperation;
  void forward(const float* src, const float* weights, const float* bias, float* dst) override {
    queue(&Convolution::forward, src, weights, bias, dst);
  }
  void backward_data(const float* dst_grad, const float* weights, float* src_grad) override {
    queue(&Convolution::backward_data, dst_grad, weights, src_grad);
  }
  void backward_weights(const float* src, const float* dst_grad, float* weights_grad,
                        float* bias_grad) override {
    queue(&Convolution::backward_weights, src, dst_grad, weights_grad, bias_grad);
  }
};

class DeferredPooling final : public DeferredOperation<Pooling> {
 public:
  using DeferredOperation::DeferredOperation;
  void forward(const float* src, float* dst, float* mask) override {
    queue(&Pooling::forward, src, dst, mask);
  }
  void backward(const float* src, const float* dst, const float* dst_grad,
                float* src_grad) override {
    queue(&Pooling::backward, reads_.src ? src : nullptr, reads_.dst ? dst : nullptr, dst_grad,
          src_grad);
  }
};

class DeferredLrn final : public DeferredOperation<Lrn> {
 public:
  using DeferredOperation::DeferredOperation;
  void forward(const float* src, float* dst) override { queue(&Lrn::forward, src, dst); }
  void backward(const float* src, const float* dst, const float* dst_grad,
                float* src_grad) override {
    queue(&Lrn::backward, reads_.src ? src : nullptr, reads_.dst ? dst : nullptr, dst_grad,
          src_grad);
  }
};

class DeferredBatchNorm final : public DeferredOperation<BatchNorm> {
 public:
  using DeferredOperation::DeferredOperation;
  void forward(const float* src, const float* gamma, const float* beta, float* mean,
               float* variance, float* dst) override {
    queue(&BatchNorm::forward, src, gamma, beta, mean, variance, dst);
  }
  void forward_fixed(const float* src, const float* mean, const float* variance, const float* gamma,
                     const float* beta, float* dst) override {
    queue(&BatchNorm::forward_fixed, src, mean, variance, gamma, beta, dst);
  }
  void add_next(const float* addend) override { queue(&BatchNorm::add_next, addend); }
  void backward(const BatchNormGradient& gradient) override {
    BatchNormGradient read = gradient;
    if (!reads_.src) read.src = nullptr;
    if (!reads_.dst) read.dst = nullptr;
    queue(&BatchNorm::backward, read);
  }
};

class DeferredBackend final : public Backend {
 public:
  DeferredBackend(std::unique_ptr<Backend> inner, DeferredOrder order)
      : inner_(std::move(inner)),
        device_(inner_->device(), order),
        name_("deferred " + std::string(inner_->name())),
        calls_(device_, inner_) {}

  std::string_view name() const override { return name_; }
  Device& device() override { return device_; }

  void copy(Elements n, const float* x, float* y) override { queue(&Backend::copy, n, x, y); }
  void fill(Elements n, float value, float* x) override { queue(&Backend::fill, n, value, x); }
  void gemm(const Gemm& product, const float* a, const float* b, float* c) override {
    queue(&Backend::gemm, product, a, b, c);
  }
  void map(const UnaryOp& op, Elements n, const float* x, float* y) override {
    queue(&Backend::map, op, n, x, y);
  }
  // What is not read may be anything.
  void map_backward(const UnaryOp& op, Elements n, const float* x, const float* y,
                    const float* y_grad, float* x_grad) override {
    const BackwardReads reads = speedo::backward_reads(op);
    queue(&Backend::map_backward, op, n, reads.src ? x : nullptr, reads.dst ? y : nullptr, y_grad,
          x_grad);
  }
  void zip(const BinaryOp& op, Elements n, const ZipArrays& arrays) override {
    queue(&Backend::zip, op, n, arrays);
  }
  double reduce(ReduceOp op, Elements n, const float* x, const float* y) override {
    return calls_.value<double>(&Backend::reduce, op, n, x, y);
  }
  void copy_rows(std::int64_t rows, Elements columns, const float* source,
                 std::int64_t source_stride, float* target, std::int64_t target_stride) override {
    queue(&Backend::copy_rows, rows, columns, source, source_stride, target, target_stride);
  }

  void reduce_rows(ReduceOp op, const RowsShape& shape, float scale, const float* x,
                   float* y) override {
    queue(&Backend::reduce_rows, op, shape, scale, x, y);
  }
  void normalize_rows(const RowNorm& norm, const float* x, float* y, float* deviation) override {
    queue(&Backend::normalize_rows, norm, x, y, deviation);
  }
  void normalize_rows_backward(const RowNorm& norm, const float* y, const float* deviation,
                               const float* y_grad, float* x_grad) override {
    queue(&Backend::normalize_rows_backward, norm, y, deviation, y_grad, x_grad);
  }
  void unfold(const ConvolutionShape& shape, const float* src, float* matrices) override {
    queue(&Backend::unfold, shape, src, matrices);
  }
  void fold(const ConvolutionShape& shape, const float* matrices, float* src) override {
    queue(&Backend::fold, shape, matrices, src);
  }
  void sample_windows(const PoolingShape& shape, std::uint64_t seed, const float* src, float* dst,
                      float* winners) override {
    queue(&Backend::sample_windows, shape, seed, src, dst, winners);
  }
  void sample_windows_backward(const PoolingShape& shape, const float* winners,
                               const float* dst_grad, float* src_grad) override {
    queue(&Backend::sample_windows_backward, shape, winners, dst_grad, src_grad);
  }
  void weigh_windows(const PoolingShape& shape, const float* src, float* dst) override {
    queue(&Backend::weigh_windows, shape, src, dst);
  }
  void weigh_windows_backward(const PoolingShape& shape, const float* src, const float* dst,
                              const float* dst_grad, float* src_grad) override {
    queue(&Backend::weigh_windows_backward, shape, src, dst, dst_grad, src_grad);
  }

  LayoutKind preferred_layout(std::span<const ConvolutionShape> convolutions) const override {
    return inner_->preferred_layout(convolutions);
  }
  bool convolves_plain(const ConvolutionShape& shape) const override {
    return inner_->convolves_plain(shape);
  }
  void reorder(const ArrayShape& shape, const float* source, Layout from, float* target,
               Layout to) override {
    queue(&Backend::reorder, shape, source, from, target, to);
  }
  void scale_channels(const ChannelView& view, const ChannelScale& scale, const float* x,
                      float* y) override {
    queue(&Backend::scale_channels, view, scale, x, y);
  }
  void sum_channels(const ChannelView& view, const float* x, const float* y_grad, float* gamma_grad,
                    float* beta_grad) override {
    queue(&Backend::sum_channels, view, x, y_grad, gamma_grad, beta_grad);
  }
  void prelu_forward(const ChannelView& view, const float* slope, const float* x,
                     float* y) override {
    queue(&Backend::prelu_forward, view, slope, x, y);
  }
  void prelu_backward(const ChannelView& view, const float* slope, const float* x,
                      const float* y_grad, float* x_grad, float* slope_grad) override {
    queue(&Backend::prelu_backward, view, slope, x, y_grad, x_grad, slope_grad);
  }
  void lstm_forward(const LstmShape& shape, const LstmForward& step) override {
    queue(&Backend::lstm_forward, shape, step);
  }
  void lstm_backward(const LstmShape& shape, const LstmBackward& step) override {
    queue(&Backend::lstm_backward, shape, step);
  }
  void dropout_mask(const ChannelView& view, float ratio, std::uint64_t seed,
                    float* mask) override {
    queue(&Backend::dropout_mask, view, ratio, seed, mask);
  }

  void softmax_forward(SoftmaxShape shape, const float* x, float* y) override {
    queue(&Backend::softmax_forward, shape, x, y);
  }
  void softmax_backward(SoftmaxShape shape, const float* y, const float* y_grad,
                        float* x_grad) override {
    queue(&Backend::softmax_backward, shape, y, y_grad, x_grad);
  }
  LabelLoss softmax_loss(SoftmaxShape shape, const float* probability, const float* labels,
                         std::optional<int> ignored) override {
    return calls_.value<LabelLoss>(&Backend::softmax_loss, shape, probability, labels, ignored);
  }
  void softmax_loss_backward(SoftmaxShape shape, const float* probability, const float* labels,
                             std::optional<int> ignored, float scale, float* grad) override {
    queue(&Backend::softmax_loss_backward, shape, probability, labels, ignored, scale, grad);
  }
  LabelLoss hinge_loss(const HingeShape& shape, const float* scores, const float* labels) override {
    return calls_.value<LabelLoss>(&Backend::hinge_loss, shape, scores, labels);
  }
  void hinge_loss_backward(const HingeShape& shape, const float* scores, const float* labels,
                           float scale, float* grad) override {
    queue(&Backend::hinge_loss_backward, shape, scores, labels, scale, grad);
  }
  SigmoidLoss sigmoid_loss(std::int64_t n, const float* x, const float* target,
                           std::optional<int> ignored) override {
    return calls_.value<SigmoidLoss>(&Backend::sigmoid_loss, n, x, target, ignored);
  }
  void sigmoid_loss_backward(std::int64_t n, const float* x, const float* target,
                             std::optional<int> ignored, float scale, float* grad) override {
    queue(&Backend::sigmoid_loss_backward, n, x, target, ignored, scale, grad);
  }
  void sgd_update(std::int64_t n, const SgdStep& step, const float* weights, float* history,
                  float* grad) override {
    queue(&Backend::sgd_update, n, step, weights, history, grad);
  }
  void sgd_step(std::int64_t n, const SgdStep& step, float* weights, float* history,
                float* grad) override {
    queue(&Backend::sgd_step, n, step, weights, history, grad);
  }
  void adaptive_update(std::int64_t n, const AdaptiveStep& step, const float* weights,
                       AdaptiveHistories histories, float* grad) override {
    queue(&Backend::adaptive_update, n, step, weights, histories, grad);
  }
  void adaptive_step(std::int64_t n, const AdaptiveStep& step, float* weights,
                     AdaptiveHistories histories, float* grad) override {
    queue(&Backend::adaptive_step, n, step, weights, histories, grad);
  }

  bool fuses(Producer producer, const UnaryOp& activation) const override {
    return inner_->fuses(producer, activation);
  }
  bool adds(Producer producer) const override { return inner_->adds(producer); }
  BackwardReads backward_reads(const PoolingShape& shape) const override {
    return inner_->backward_reads(shape);
  }
  BackwardReads backward_reads(const LrnShape& shape) const override {
    return inner_->backward_reads(shape);
  }
  BackwardReads backward_reads(const BatchNormShape& shape) const override {
    return inner_->backward_reads(shape);
  }
  Result<std::unique_ptr<Convolution>> make_convolution(const ConvolutionShape& shape) override {
    return deferred<Convolution, DeferredConvolution>(inner_->make_convolution(shape), {});
  }
  Result<std::unique_ptr<Pooling>> make_pooling(const PoolingShape& shape) override {
    return deferred<Pooling, DeferredPooling>(inner_->make_pooling(shape), backward_reads(shape));
  }
  Result<std::unique_ptr<Lrn>> make_lrn(const LrnShape& shape) override {
    return deferred<Lrn, DeferredLrn>(inner_->make_lrn(shape), backward_reads(shape));
  }
  Result<std::unique_ptr<BatchNorm>> make_batch_norm(const BatchNormShape& shape) override {
    return deferred<BatchNorm, DeferredBatchNorm>(inner_->make_batch_norm(shape),
                                                  backward_reads(shape));
  }
  std::int64_t scratch_bytes() const override { return inner_->scratch_bytes(); }
  Result<void> provide_scratch() override { return inner_->provide_scratch(); }

 private:
  template <class... Arguments>
  void queue(Arguments... arguments) {
    calls_.queue(arguments...);
  }
  template <class Kind, class Deferred>
  Result<std::unique_ptr<Kind>> deferred(Result<std::unique_ptr<Kind>> made, BackwardReads reads) {
    if (!made) return made.error();
    return std::unique_ptr<Kind>(std::make_unique<Deferred>(device_, std::move(*made), reads));
  }

  std::shared_ptr<Backend> inner_;
  DeferredDevice device_;
  std::string name_;
  DeferredCalls<Backend> calls_;
};

}  // namespace

std::unique_ptr<Backend> make_deferred_backend(std::unique_ptr<Backend> inner,
                                               DeferredOrder order) {
  return std::make_unique<DeferredBackend>(std::move(inner), order);
}

}  // namespace speedo
