#include "gpu/gpu_backend.hpp"

#include <array>
#include <utility>

#include "gpu/convolution/convolution.hpp"
#include "gpu/convolution/im2col.hpp"
#include "gpu/elementwise/channels.hpp"
#include "gpu/elementwise/elementwise.hpp"
#include "gpu/gemm/gemm.hpp"
#include "gpu/launch/queue.hpp"
#include "gpu/library/workspace.hpp"
#include "gpu/lrn/lrn.hpp"
#include "gpu/norm/batch_norm.hpp"
#include "gpu/norm/row_norm.hpp"
#include "gpu/norm/running_statistics.hpp"
#include "gpu/pooling/pooling.hpp"
#include "gpu/pooling/pooling_stochastic.hpp"
#include "gpu/recurrent/lstm.hpp"
#include "gpu/reorder/reorder.hpp"
#include "gpu/softmax/losses.hpp"
#include "gpu/softmax/softmax.hpp"
#include "gpu/steps/device_steps.hpp"
#include "gpu/steps/step_recorder.hpp"

namespace speedo::gpu {
namespace {

constexpr std::size_t kResultBytes = 256;

std::array<UpdateRange, 1> one_range(std::int64_t n, const SgdStep& step) {
  return {{{.first = 0, .count = n, .rate = step.rate, .l2 = step.l2, .l1 = step.l1}}};
}

struct Libraries {
  std::unique_ptr<Blas> blas;
  std::unique_ptr<Dnn> dnn;
};

class GpuBackend final : public Backend {
 public:
  GpuBackend(GpuParts& parts, std::unique_ptr<StepRecorder> driver,
             std::unique_ptr<GpuDevice> device, Queue queue, Buffer results, Libraries libraries)
      : name_(std::move(parts.name)),
        arithmetic_(parts.arithmetic),
        has_graphs_(parts.has_graphs),
        driver_(std::move(driver)),
        device_(std::move(device)),
        queue_(std::move(queue)),
        results_(std::move(results)),
        blas_(std::move(libraries.blas)),
        dnn_(std::move(libraries.dnn)),
        workspace_(*driver_, device_->compute_handle(), [this] { device_->drop_unused(); }),
        products_{queue_, *blas_, workspace_} {
    workspace_.reserve(blas_->workspace_bytes());
  }
  ~GpuBackend() override { device_->synchronize(); }

  std::string_view name() const override { return name_; }
  Device& device() override { return *device_; }

  void copy(Elements n, const float* x, float* y) override { gpu::copy(queue_, n, x, y); }
  void fill(Elements n, float value, float* x) override { gpu::fill(queue_, n, value, x); }

  void gemm(const Gemm& product, const float* a, const float* b, float* c) override {
    gpu::gemm(products_, product, a, b, c);
  }

  void map(const UnaryOp& op, Elements n, const float* x, float* y) override {
    gpu::map(queue_, op, n, x, y);
  }
  void map_backward(const UnaryOp& op, Elements n, const float* x, const float* y,
                    const float* y_grad, float* x_grad) override {
    const BackwardReads reads = speedo::backward_reads(op);
    gpu::map_backward(queue_, op, n,
                      {reads.src ? x : nullptr, reads.dst ? y : nullptr, y_grad, x_grad});
  }
  void zip(const BinaryOp& op, Elements n, const ZipArrays& arrays) override {
    gpu::zip(queue_, op, n, arrays);
  }
  void sum_gradients(const std::optional<UnaryOp>& f, Elements n,
                     std::span<const float* const> gradients, const float* y,
                     float* x_grad) override {
    gpu::sum_gradients(queue_, f, n, gradients, {y, x_grad});
  }
  double reduce(ReduceOp op, Elements n, const float* x, const float* y) override {
    gpu::reduce(queue_, op, n, x, y, result_of<double>());
    return queue_.read<double>(result_of<double>());
  }
  void copy_rows(std::int64_t rows, Elements columns, const float* source,
                 std::int64_t source_stride, float* target, std::int64_t target_stride) override {
    gpu::copy_rows(queue_, rows, columns, {source, source_stride}, {target, target_stride});
  }

  void reduce_rows(ReduceOp op, const RowsShape& shape, float scale, const float* x,
                   float* y) override {
    gpu::reduce_rows(queue_, op, shape, scale, x, y);
  }
  void normalize_rows(const RowNorm& norm, const float* x, float* y, float* deviation) override {
    gpu::normalize_rows(queue_, norm, x, y, deviation);
  }
  void normalize_rows_backward(const RowNorm& norm, const float* y, const float* deviation,
                               const float* y_grad, float* x_grad) override {
    gpu::normalize_rows_backward(queue_, norm, {y, deviation, y_grad, x_grad});
  }
  void unfold(const ConvolutionShape& shape, const float* src, float* matrices) override {
    gpu::unfold(queue_, shape, src, matrices);
  }
  void fold(const ConvolutionShape& shape, const float* matrices, float* src) override {
    gpu::fold(queue_, shape, matrices, src);
  }
  void sample_windows(const PoolingShape& shape, std::uint64_t seed, const float* src, float* dst,
                      float* winners) override {
    gpu::sample_windows(queue_, shape, seed, src, dst, winners);
  }
  void sample_windows_backward(const PoolingShape& shape, const float* winners,
                               const float* dst_grad, float* src_grad) override {
    gpu::sample_windows_backward(queue_, shape, winners, dst_grad, src_grad);
  }
  void weigh_windows(const PoolingShape& shape, const float* src, float* dst) override {
    gpu::weigh_windows(queue_, shape, src, dst);
  }
  void weigh_windows_backward(const PoolingShape& shape, const float* src, const float* dst,
                              const float* dst_grad, float* src_grad) override {
    gpu::weigh_windows_backward(queue_, shape, src, dst, dst_grad, src_grad);
  }

  LayoutKind preferred_layout(std::span<const ConvolutionShape> convolutions) const override {
    return gpu::preferred_layout(convolutions, arithmetic_);
  }
  bool convolves_plain(const ConvolutionShape&) const override { return false; }
  void reorder(const ArrayShape& shape, const float* source, Layout from, float* target,
               Layout to) override {
    gpu::reorder(queue_, shape, source, from, target, to);
  }

  void scale_channels(const ChannelView& view, const ChannelScale& scale, const float* x,
                      float* y) override {
    gpu::scale_channels(queue_, view, scale, x, y);
  }
  void sum_channels(const ChannelView& view, const float* x, const float* y_grad, float* gamma_grad,
                    float* beta_grad) override {
    gpu::sum_channels(queue_, view, x, y_grad, gamma_grad, beta_grad);
  }
  void add_to_running(const RunningStatistics& of) override { gpu::add_to_running(queue_, of); }
  void read_running(const RunningMeans& of) override { gpu::read_running(queue_, of); }
  void prelu_forward(const ChannelView& view, const float* slope, const float* x,
                     float* y) override {
    gpu::prelu_forward(queue_, view, slope, x, y);
  }
  void prelu_backward(const ChannelView& view, const float* slope, const float* x,
                      const float* y_grad, float* x_grad, float* slope_grad) override {
    gpu::prelu_backward(queue_, view, {slope, x, y_grad, x_grad, slope_grad});
  }

  void lstm_forward(const LstmShape& shape, const LstmForward& step) override {
    gpu::lstm_forward(queue_, shape, step);
  }
  void lstm_backward(const LstmShape& shape, const LstmBackward& step) override {
    gpu::lstm_backward(queue_, shape, step);
  }

  void dropout_mask(const ChannelView& view, float ratio, std::uint64_t seed,
                    float* mask) override {
    gpu::dropout_mask(queue_, view, ratio, seed, mask);
  }

  void softmax_forward(SoftmaxShape shape, const float* x, float* y) override {
    gpu::softmax_forward(queue_, shape, x, y);
  }
  void softmax_backward(SoftmaxShape shape, const float* y, const float* y_grad,
                        float* x_grad) override {
    gpu::softmax_backward(queue_, shape, y, y_grad, x_grad);
  }
  LabelLoss softmax_loss(SoftmaxShape shape, const float* probability, const float* labels,
                         std::optional<int> ignored) override {
    gpu::softmax_loss(queue_, shape, probability, {labels, ignored}, result_of<LossSums>());
    return label_loss();
  }
  void softmax_loss_backward(SoftmaxShape shape, const float* probability, const float* labels,
                             std::optional<int> ignored, float scale, float* grad) override {
    gpu::softmax_loss_backward(queue_, shape, probability, {labels, ignored}, LossScale{scale},
                               grad);
  }

  LabelLoss hinge_loss(const HingeShape& shape, const float* scores, const float* labels) override {
    gpu::hinge_loss(queue_, shape, scores, labels, result_of<LossSums>());
    return label_loss();
  }
  void hinge_loss_backward(const HingeShape& shape, const float* scores, const float* labels,
                           float scale, float* grad) override {
    gpu::hinge_loss_backward(queue_, shape, scores, labels, scale, grad);
  }
  SigmoidLoss sigmoid_loss(std::int64_t n, const float* x, const float* target,
                           std::optional<int> ignored) override {
    gpu::sigmoid_loss(queue_, n, x, {target, ignored}, result_of<LossSums>());
    const auto sums = queue_.read<LossSums>(result_of<LossSums>());
    return {sums.sum, sums.valid};
  }
  void sigmoid_loss_backward(std::int64_t n, const float* x, const float* target,
                             std::optional<int> ignored, float scale, float* grad) override {
    gpu::sigmoid_loss_backward(queue_, n, x, {target, ignored}, LossScale{scale}, grad);
  }

  void sgd_update(std::int64_t n, const SgdStep& step, const float* weights, float* history,
                  float* grad) override {
    sgd_update_ranges(one_range(n, step), step, weights, history, grad);
  }
  void sgd_step(std::int64_t n, const SgdStep& step, float* weights, float* history,
                float* grad) override {
    sgd_step_ranges(one_range(n, step), step, weights, history, grad);
  }
  void adaptive_update(std::int64_t n, const AdaptiveStep& step, const float* weights,
                       AdaptiveHistories histories, float* grad) override {
    adaptive_update_ranges(one_range(n, step.base), step, weights, histories, grad);
  }
  void adaptive_step(std::int64_t n, const AdaptiveStep& step, float* weights,
                     AdaptiveHistories histories, float* grad) override {
    adaptive_step_ranges(one_range(n, step.base), step, weights, histories, grad);
  }
  void sgd_update_ranges(std::span<const UpdateRange> ranges, const SgdStep& step,
                         const float* weights, float* history, float* grad) override {
    gpu::sgd_update(queue_, ranges, step, weights, history, grad);
  }
  void sgd_step_ranges(std::span<const UpdateRange> ranges, const SgdStep& step, float* weights,
                       float* history, float* grad) override {
    gpu::sgd_step(queue_, ranges, step, weights, history, grad);
  }
  void adaptive_update_ranges(std::span<const UpdateRange> ranges, const AdaptiveStep& step,
                              const float* weights, AdaptiveHistories histories,
                              float* grad) override {
    gpu::adaptive_update(queue_, ranges, step, weights, histories, grad);
  }
  void adaptive_step_ranges(std::span<const UpdateRange> ranges, const AdaptiveStep& step,
                            float* weights, AdaptiveHistories histories, float* grad) override {
    gpu::adaptive_step(queue_, ranges, step, weights, histories, grad);
  }

  bool fuses(Producer producer, const UnaryOp& activation) const override {
    return producer == Producer::kConvolution || batch_norm_fuses(activation);
  }
  bool adds(Producer producer) const override { return producer == Producer::kBatchNorm; }
  BackwardReads backward_reads(const PoolingShape& shape) const override {
    return pooling_reads(shape);
  }
  BackwardReads backward_reads(const LrnShape& shape) const override { return lrn_reads(shape); }
  BackwardReads backward_reads(const BatchNormShape& shape) const override {
    return batch_norm_reads(shape);
  }
  Result<std::unique_ptr<Convolution>> make_convolution(const ConvolutionShape& shape) override {
    return gpu::make_convolution(shape, {products_, *dnn_});
  }
  Result<std::unique_ptr<Pooling>> make_pooling(const PoolingShape& shape) override {
    return gpu::make_pooling(queue_, *device_, shape);
  }
  Result<std::unique_ptr<Lrn>> make_lrn(const LrnShape& shape) override {
    return gpu::make_lrn(queue_, workspace_, shape);
  }
  Result<std::unique_ptr<BatchNorm>> make_batch_norm(const BatchNormShape& shape) override {
    return gpu::make_batch_norm(queue_, *device_, shape);
  }
  bool has_narrow_range() const override { return arithmetic_ == Arithmetic::kFloat16; }
  Result<std::unique_ptr<DeviceSteps>> make_device_steps() override {
    return gpu::make_device_steps(queue_, *device_, *driver_, has_graphs_);
  }
  std::int64_t scratch_bytes() const override { return workspace_.bytes(); }
  Result<void> provide_scratch() override { return workspace_.provide(); }

 private:
  // A number that the host waits for, on the device.
  template <class Value>
  Value* result_of() {
    static_assert(sizeof(Value) <= kResultBytes);
    return static_cast<Value*>(results_.data());
  }
  LabelLoss label_loss() {
    const auto sums = queue_.read<LossSums>(result_of<LossSums>());
    return {sums.sum, sums.valid, sums.bad_index, static_cast<float>(sums.bad_label)};
  }

  const std::string name_;
  const Arithmetic arithmetic_;
  const bool has_graphs_;
  const std::unique_ptr<StepRecorder> driver_;
  const std::unique_ptr<GpuDevice> device_;
  Queue queue_;
  Buffer results_;
  const std::unique_ptr<Blas> blas_;
  const std::unique_ptr<Dnn> dnn_;
  Workspace workspace_;
  const GemmContext products_;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_gpu_backend(GpuParts parts) {
  SPEEDO_ASSIGN(std::unique_ptr<StepRecorder> driver,
                StepRecorder::make(std::move(parts.driver), parts.lets_go));
  SPEEDO_ASSIGN(std::unique_ptr<GpuDevice> device, GpuDevice::make(*driver, parts.limits));
  const StreamHandle stream = device->compute_handle();
  SPEEDO_ASSIGN(Queue queue, Queue::make(*driver, stream));
  queue.fuses = parts.fuses;
  SPEEDO_ASSIGN(Buffer results, device->allocate(kResultBytes));
  Libraries libraries;
  SPEEDO_ASSIGN(libraries.blas, parts.make_blas(stream));
  SPEEDO_ASSIGN(libraries.dnn, parts.make_dnn(stream));
  return std::unique_ptr<Backend>(
      std::make_unique<GpuBackend>(parts, std::move(driver), std::move(device), std::move(queue),
                                   std::move(results), std::move(libraries)));
}

}  // namespace speedo::gpu
