#include <speedo/cpu/cpu_backend.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <speedo/backend/host_device.hpp>

#include "cpu/convolution/convolution.hpp"
#include "cpu/convolution/im2col.hpp"
#include "cpu/elementwise/channels.hpp"
#include "cpu/elementwise/dropout_mask.hpp"
#include "cpu/elementwise/elementwise.hpp"
#include "cpu/gemm/gemm.hpp"
#include "cpu/gemm/openblas.hpp"
#include "cpu/isa.hpp"
#include "cpu/lrn/lrn.hpp"
#include "cpu/memory.hpp"
#include "cpu/norm/batch_norm.hpp"
#include "cpu/norm/row_norm.hpp"
#include "cpu/pooling/pooling.hpp"
#include "cpu/pooling/pooling_stochastic.hpp"
#include "cpu/recurrent/lstm.hpp"
#include "cpu/reorder/reorder.hpp"
#include "cpu/softmax/losses.hpp"
#include "cpu/softmax/softmax.hpp"
#include "cpu/thread_pool.hpp"

namespace speedo {
namespace {

// Elements that make it worth waking another thread.
constexpr std::int64_t kGrain = 16384;

void copy_floats(cpu::ThreadPool& pool, std::int64_t n, const float* x, float* y) {
  if (x == y || n == 0) return;
  pool.split(n, kGrain, [&](std::int64_t first, std::int64_t last, int) {
    std::memcpy(y + first, x + first, static_cast<std::size_t>(last - first) * sizeof(float));
  });
}

class CpuDevice final : public HostDevice {
 public:
  explicit CpuDevice(cpu::ThreadPool& pool) : pool_(pool) {}

  Result<Buffer> allocate(std::size_t bytes) override { return cpu::allocate(bytes); }
  Result<Buffer> allocate_shared(std::size_t bytes) override {
    if (bytes == 0) return Buffer();
    auto shared = SharedMemory::create(bytes);
    return shared ? Buffer(std::move(*shared)) : cpu::allocate(bytes);
  }
  void upload(float* target, std::span<const float> source) override {
    copy_floats(pool_, static_cast<std::int64_t>(source.size()), source.data(), target);
  }
  void download(std::span<float> target, const float* source) override {
    copy_floats(pool_, static_cast<std::int64_t>(target.size()), source, target.data());
  }

 private:
  cpu::ThreadPool& pool_;
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(int threads, int parts, CpuPrecision precision)
      : pool_(threads, parts),
        device_(pool_),
        scratch_(parts),
        context_{pool_, scratch_, precision} {}

  std::string_view name() const override { return "cpu"; }
  Device& device() override { return device_; }

  void copy(Elements n, const float* x, float* y) override {
    copy_floats(pool_, n.floats(), x, y);
  }
  void fill(Elements n, float value, float* x) override {
    split(n, [&](std::int64_t at, std::int64_t count) { cpu::fill(count, value, x + at); });
  }

  void gemm(const Gemm& product, const float* a, const float* b, float* c) override {
    cpu::gemm(pool_, product, a, b, c);
  }

  void map(const UnaryOp& op, Elements n, const float* x, float* y) override {
    split(n, [&](std::int64_t at, std::int64_t count) { cpu::map(op, count, x + at, y + at); });
  }
  void map_backward(const UnaryOp& op, Elements n, const float* x, const float* y,
                    const float* y_grad, float* x_grad) override {
    const BackwardReads reads = speedo::backward_reads(op);
    split(n, [&](std::int64_t at, std::int64_t count) {
      cpu::map_backward(op, count, reads.src ? x + at : nullptr, reads.dst ? y + at : nullptr,
                        y_grad + at, x_grad + at);
    });
  }
  void zip(const BinaryOp& op, Elements n, const ZipArrays& arrays) override {
    split(n, [&](std::int64_t at, std::int64_t count) {
      cpu::zip(op, count, cpu::advanced(arrays, at));
    });
  }
  double reduce(ReduceOp op, Elements n, const float* x, const float* y) override {
    return cpu::reduce(pool_, op, n.floats(), x, y);
  }

  void copy_rows(std::int64_t rows, Elements columns, const float* source,
                 std::int64_t source_stride, float* target, std::int64_t target_stride) override {
    const std::int64_t floats = columns.floats();
    const std::int64_t grain =
        std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, floats));
    pool_.split(rows, grain, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t r = first; r < last; ++r) {
        std::memcpy(target + r * target_stride, source + r * source_stride,
                    static_cast<std::size_t>(floats) * sizeof(float));
      }
    });
  }

  void reduce_rows(ReduceOp op, const RowsShape& shape, float scale, const float* x,
                   float* y) override {
    cpu::reduce_rows(pool_, op, shape, scale, x, y);
  }
  void normalize_rows(const RowNorm& norm, const float* x, float* y, float* deviation) override {
    cpu::normalize_rows(pool_, norm, x, y, deviation);
  }
  void normalize_rows_backward(const RowNorm& norm, const float* y, const float* deviation,
                               const float* y_grad, float* x_grad) override {
    cpu::normalize_rows_backward(pool_, norm, {y, deviation, y_grad, x_grad});
  }
  void unfold(const ConvolutionShape& shape, const float* src, float* matrices) override {
    cpu::unfold(pool_, shape, src, matrices);
  }
  void fold(const ConvolutionShape& shape, const float* matrices, float* src) override {
    cpu::fold(pool_, shape, matrices, src);
  }
  void sample_windows(const PoolingShape& shape, std::uint64_t seed, const float* src, float* dst,
                      float* winners) override {
    cpu::sample_windows(pool_, shape, seed, src, dst, winners);
  }
  void sample_windows_backward(const PoolingShape& shape, const float* winners,
                               const float* dst_grad, float* src_grad) override {
    cpu::sample_windows_backward(pool_, shape, winners, dst_grad, src_grad);
  }
  void weigh_windows(const PoolingShape& shape, const float* src, float* dst) override {
    cpu::weigh_windows(pool_, shape, src, dst);
  }
  void weigh_windows_backward(const PoolingShape& shape, const float* src, const float* dst,
                              const float* dst_grad, float* src_grad) override {
    cpu::weigh_windows_backward(pool_, shape, src, dst, dst_grad, src_grad);
  }

  LayoutKind preferred_layout(std::span<const ConvolutionShape> convolutions) const override {
    return cpu::preferred_layout(convolutions, context_);
  }
  bool convolves_plain(const ConvolutionShape& shape) const override {
    return cpu::convolves_plain(shape, context_);
  }
  void reorder(const ArrayShape& shape, const float* source, Layout from, float* target,
               Layout to) override {
    cpu::reorder(pool_, shape, source, from, target, to);
  }

  void scale_channels(const ChannelView& view, const ChannelScale& scale, const float* x,
                      float* y) override {
    cpu::scale_channels(pool_, view, scale, x, y);
  }
  void sum_channels(const ChannelView& view, const float* x, const float* y_grad, float* gamma_grad,
                    float* beta_grad) override {
    cpu::sum_channels(pool_, view, x, y_grad, gamma_grad, beta_grad);
  }
  void prelu_forward(const ChannelView& view, const float* slope, const float* x,
                     float* y) override {
    cpu::prelu_forward(pool_, view, slope, x, y);
  }
  void prelu_backward(const ChannelView& view, const float* slope, const float* x,
                      const float* y_grad, float* x_grad, float* slope_grad) override {
    cpu::prelu_backward(pool_, view, {slope, x, y_grad, x_grad, slope_grad});
  }

  void lstm_forward(const LstmShape& shape, const LstmForward& step) override {
    cpu::lstm_forward(pool_, shape, step);
  }
  void lstm_backward(const LstmShape& shape, const LstmBackward& step) override {
    cpu::lstm_backward(pool_, shape, step);
  }

  void dropout_mask(const ChannelView& view, float ratio, std::uint64_t seed,
                    float* mask) override {
    cpu::dropout_mask(pool_, view, ratio, seed, mask);
  }

  void softmax_forward(SoftmaxShape shape, const float* x, float* y) override {
    split_rows(shape, [&](std::int64_t first, std::int64_t last) {
      cpu::softmax_forward(shape, first, last, x, y);
    });
  }
  void softmax_backward(SoftmaxShape shape, const float* y, const float* y_grad,
                        float* x_grad) override {
    split_rows(shape, [&](std::int64_t first, std::int64_t last) {
      cpu::softmax_backward(shape, first, last, y, y_grad, x_grad);
    });
  }
  LabelLoss softmax_loss(SoftmaxShape shape, const float* probability, const float* labels,
                         std::optional<int> ignored) override {
    return cpu::softmax_loss(shape, probability, labels, ignored);
  }
  void softmax_loss_backward(SoftmaxShape shape, const float* probability, const float* labels,
                             std::optional<int> ignored, float scale, float* grad) override {
    split_rows(shape, [&](std::int64_t first, std::int64_t last) {
      cpu::softmax_loss_backward(shape, first, last, {probability, labels, ignored}, scale, grad);
    });
  }

  LabelLoss hinge_loss(const HingeShape& shape, const float* scores, const float* labels) override {
    return cpu::hinge_loss(pool_, shape, scores, labels);
  }
  void hinge_loss_backward(const HingeShape& shape, const float* scores, const float* labels,
                           float scale, float* grad) override {
    cpu::hinge_loss_backward(pool_, shape, scores, labels, scale, grad);
  }
  SigmoidLoss sigmoid_loss(std::int64_t n, const float* x, const float* target,
                           std::optional<int> ignored) override {
    return cpu::sigmoid_loss(pool_, n, {x, target, ignored});
  }
  void sigmoid_loss_backward(std::int64_t n, const float* x, const float* target,
                             std::optional<int> ignored, float scale, float* grad) override {
    split(n, [&](std::int64_t at, std::int64_t count) {
      cpu::sigmoid_loss_backward(count, {x + at, target + at, ignored}, scale, grad + at);
    });
  }

  void sgd_update(std::int64_t n, const SgdStep& step, const float* weights, float* history,
                  float* grad) override {
    split(n, [&](std::int64_t at, std::int64_t count) {
      cpu::sgd_update(count, step, weights + at, history + at, grad + at);
    });
  }
  void sgd_step(std::int64_t n, const SgdStep& step, float* weights, float* history,
                float* grad) override {
    split(n, [&](std::int64_t at, std::int64_t count) {
      cpu::sgd_step(count, step, weights + at, history + at, grad + at);
    });
  }
  void adaptive_update(std::int64_t n, const AdaptiveStep& step, const float* weights,
                       AdaptiveHistories histories, float* grad) override {
    split(n, [&](std::int64_t at, std::int64_t count) {
      cpu::adaptive_update(count, step, weights + at, cpu::advanced(histories, at), grad + at);
    });
  }
  void adaptive_step(std::int64_t n, const AdaptiveStep& step, float* weights,
                     AdaptiveHistories histories, float* grad) override {
    split(n, [&](std::int64_t at, std::int64_t count) {
      cpu::adaptive_step(count, step, weights + at, cpu::advanced(histories, at), grad + at);
    });
  }

  // Kernels that lack one apply it to what is still in the cache; a normalization's backward pass
  // knows the ReLU alone.
  bool fuses(Producer producer, const UnaryOp& activation) const override {
    return producer == Producer::kConvolution || activation.kind == UnaryKind::kRelu;
  }
  // Maxima keep where they were.
  BackwardReads backward_reads(const PoolingShape&) const override { return {}; }
  BackwardReads backward_reads(const LrnShape&) const override { return {.src = true}; }
  BackwardReads backward_reads(const BatchNormShape& shape) const override {
    return cpu::batch_norm_reads(shape);
  }
  Result<std::unique_ptr<Convolution>> make_convolution(const ConvolutionShape& shape) override {
    return cpu::make_convolution(shape, context_);
  }
  Result<std::unique_ptr<Pooling>> make_pooling(const PoolingShape& shape) override {
    return cpu::make_pooling(shape, pool_, scratch_);
  }
  Result<std::unique_ptr<Lrn>> make_lrn(const LrnShape& shape) override {
    return cpu::make_lrn(shape, pool_, scratch_);
  }
  Result<std::unique_ptr<BatchNorm>> make_batch_norm(const BatchNormShape& shape) override {
    return cpu::make_batch_norm(shape, pool_, scratch_);
  }
  std::int64_t scratch_bytes() const override { return scratch_.bytes(); }
  Result<void> provide_scratch() override { return scratch_.provide(); }

 private:
  // Calls body(at, count) on parts of [0, n).
  template <class Body>
  void split(Elements n, const Body& body) {
    pool_.split(n.floats(), kGrain,
                [&](std::int64_t first, std::int64_t last, int) { body(first, last - first); });
  }
  template <class Body>
  void split_rows(SoftmaxShape shape, const Body& body) {
    const std::int64_t row = std::max<std::int64_t>(1, shape.classes * shape.inner);
    pool_.split(shape.outer, std::max<std::int64_t>(1, kGrain / row),
                [&](std::int64_t first, std::int64_t last, int) { body(first, last); });
  }

  cpu::ThreadPool pool_;
  CpuDevice device_;
  cpu::Scratch scratch_;
  cpu::Context context_;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_cpu_backend(const CpuOptions& options) {
  if (options.precision == CpuPrecision::kBfloat16 && !cpu::has_bfloat16()) {
    return Error{ErrorCode::kUsage,
                 "bf16 needs a build with oneDNN, and a processor with AVX-512 BF16 that may be "
                 "used; leave --precision at f32"};
  }
  cpu::settle_cpu_isa();
  SPEEDO_TRY(cpu::load_openblas());
  int threads = options.threads > 0 ? std::min(options.threads, kCpuThreadsMax) : default_threads();
  if (options.parts > 0) threads = std::min(threads, options.parts);
  const int parts = std::max(threads, options.parts);
  SPEEDO_TRY(cpu::check_room_for_openblas(threads));
  return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(threads, parts, options.precision));
}

std::unique_ptr<Backend> make_cpu_backend(int threads) {
  auto made = make_cpu_backend(CpuOptions{.threads = threads});
  if (!made) {
    std::fprintf(stderr, "%s\n", made.error().message.c_str());
    std::abort();
  }
  return std::move(*made);
}

}  // namespace speedo
