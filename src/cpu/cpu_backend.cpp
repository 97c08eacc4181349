#include "cpu/cpu_backend.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cpu/batch_norm.hpp"
#include "cpu/channels.hpp"
#include "cpu/convolution.hpp"
#include "cpu/elementwise.hpp"
#include "cpu/gemm.hpp"
#include "cpu/isa.hpp"
#include "cpu/lrn.hpp"
#include "cpu/memory.hpp"
#include "cpu/openblas.hpp"
#include "cpu/pooling.hpp"
#include "cpu/reorder.hpp"
#include "cpu/softmax.hpp"
#include "cpu/thread_pool.hpp"

namespace speedo {
namespace {

// Elements that make it worth waking another thread.
constexpr std::int64_t kGrain = 16384;

class CpuBackend final : public Backend {
 public:
  CpuBackend(int threads, int parts, CpuPrecision precision)
      : pool_(threads, parts), scratch_(parts), workplace_{pool_, scratch_, precision} {}

  std::string_view name() const override { return "cpu"; }

  Result<Buffer> allocate(std::size_t bytes) override { return cpu::allocate(bytes); }
  void upload(float* target, std::span<const float> source) override {
    copy(static_cast<std::int64_t>(source.size()), source.data(), target);
  }
  void download(std::span<float> target, const float* source) override {
    copy(static_cast<std::int64_t>(target.size()), source, target.data());
  }
  void synchronize() override {}
  void copy(std::int64_t n, const float* x, float* y) override {
    if (x == y || n == 0) return;
    split(n, [&](std::int64_t at, std::int64_t count) {
      std::memcpy(y + at, x + at, static_cast<std::size_t>(count) * sizeof(float));
    });
  }
  void fill(std::int64_t n, float value, float* x) override {
    split(n, [&](std::int64_t at, std::int64_t count) { cpu::fill(count, value, x + at); });
  }

  void gemm(Op a_op, Op b_op, GemmShape shape, float alpha, const float* a, const float* b,
            float beta, float* c) override {
    cpu::gemm(pool_, a_op, b_op, shape, alpha, a, b, beta, c);
  }

  void axpby(std::int64_t n, float alpha, const float* x, float beta, float* y) override {
    split(n, [&](std::int64_t at, std::int64_t count) {
      cpu::axpby(count, alpha, x + at, beta, y + at);
    });
  }
  void multiply(std::int64_t n, const float* a, const float* b, float* y) override {
    split(n, [&](std::int64_t at, std::int64_t count) {
      cpu::multiply(count, a + at, b + at, y + at);
    });
  }
  void square(std::int64_t n, const float* x, float* y) override {
    split(n, [&](std::int64_t at, std::int64_t count) { cpu::square(count, x + at, y + at); });
  }
  void power(std::int64_t n, const float* x, float exponent, float* y) override {
    split(n, [&](std::int64_t at, std::int64_t count) {
      cpu::power(count, x + at, exponent, y + at);
    });
  }
  void divide(std::int64_t n, const float* a, const float* b, float* y) override {
    split(n,
          [&](std::int64_t at, std::int64_t count) { cpu::divide(count, a + at, b + at, y + at); });
  }
  void add_scalar(std::int64_t n, float value, float* y) override {
    split(n, [&](std::int64_t at, std::int64_t count) { cpu::add_scalar(count, value, y + at); });
  }
  double dot(std::int64_t n, const float* x, const float* y) override {
    return cpu::dot(pool_, n, x, y);
  }
  double sum_abs(std::int64_t n, const float* x) override { return cpu::sum_abs(pool_, n, x); }
  bool all_finite(std::int64_t n, const float* x) override { return cpu::all_finite(pool_, n, x); }

  void add_row(std::int64_t rows, std::int64_t columns, const float* bias, float* y) override {
    cpu::add_row(pool_, rows, columns, bias, y);
  }
  void sum_rows(std::int64_t rows, std::int64_t columns, const float* x, float* sum) override {
    cpu::sum_rows(pool_, rows, columns, x, sum);
  }
  void copy_rows(std::int64_t rows, std::int64_t columns, const float* source,
                 std::int64_t source_stride, float* target, std::int64_t target_stride) override {
    const std::int64_t grain =
        std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, columns));
    pool_.split(rows, grain, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t r = first; r < last; ++r) {
        std::memcpy(target + r * target_stride, source + r * source_stride,
                    static_cast<std::size_t>(columns) * sizeof(float));
      }
    });
  }

  LayoutKind preferred_layout(std::span<const ConvolutionShape> convolutions) const override {
    return cpu::preferred_layout(convolutions, workplace_);
  }
  bool convolves_plain(const ConvolutionShape& shape) const override {
    return cpu::convolves_plain(shape, workplace_);
  }
  void reorder(const ArrayShape& shape, const float* source, Layout from, float* target,
               Layout to) override {
    cpu::reorder(pool_, shape, source, from, target, to);
  }

  void scale_channels(const ArrayShape& shape, Layout layout, const float* gamma, const float* beta,
                      const float* x, float* y) override {
    cpu::scale_channels(pool_, shape, layout, gamma, beta, x, y);
  }
  void sum_channels(const ArrayShape& shape, Layout layout, const float* x, const float* y_grad,
                    float* gamma_grad, float* beta_grad) override {
    cpu::sum_channels(pool_, shape, layout, x, y_grad, gamma_grad, beta_grad);
  }
  void prelu_forward(const ArrayShape& shape, Layout layout, const float* slope, const float* x,
                     float* y) override {
    cpu::prelu_forward(pool_, shape, layout, slope, x, y);
  }
  void prelu_backward(const ArrayShape& shape, Layout layout, const float* slope, const float* x,
                      const float* y_grad, float* x_grad, float* slope_grad) override {
    cpu::prelu_backward(pool_, shape, layout, slope, x, y_grad, x_grad, slope_grad);
  }

  void map(const UnaryOp& op, std::int64_t n, const float* x, float* y) override {
    split(n, [&](std::int64_t at, std::int64_t count) { cpu::map(op, count, x + at, y + at); });
  }
  void map_backward(const UnaryOp& op, std::int64_t n, const float* x, const float* y,
                    const float* y_grad, float* x_grad) override {
    const UnaryReads reads = backward_reads(op);
    split(n, [&](std::int64_t at, std::int64_t count) {
      cpu::map_backward(op, count, reads.x ? x + at : nullptr, reads.y ? y + at : nullptr,
                        y_grad + at, x_grad + at);
    });
  }
  void dropout_mask(std::int64_t n, float ratio, std::uint64_t seed, float* mask) override {
    split(n, [&](std::int64_t at, std::int64_t count) {
      cpu::dropout_mask(count, ratio, seed + static_cast<std::uint64_t>(at), mask + at);
    });
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
  SoftmaxLoss softmax_loss(SoftmaxShape shape, const float* probability, const float* labels,
                           bool has_ignore, int ignore_label) override {
    return cpu::softmax_loss(shape, probability, labels, {has_ignore, ignore_label});
  }
  void softmax_loss_backward(SoftmaxShape shape, const float* probability, const float* labels,
                             bool has_ignore, int ignore_label, float scale, float* grad) override {
    split_rows(shape, [&](std::int64_t first, std::int64_t last) {
      cpu::softmax_loss_backward(shape, first, last, probability, labels,
                                 {has_ignore, ignore_label}, scale, grad);
    });
  }

  void max_forward(std::int64_t n, const float* a, const float* b, bool first, float b_index,
                   float* mask, float* y) override {
    split(n, [&](std::int64_t at, std::int64_t count) {
      cpu::max_forward(count, a + at, b + at, first, b_index, mask + at, y + at);
    });
  }
  void max_backward(std::int64_t n, const float* mask, float index, const float* y_grad,
                    float* x_grad) override {
    split(n, [&](std::int64_t at, std::int64_t count) {
      cpu::max_backward(count, mask + at, index, y_grad + at, x_grad + at);
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

  Result<std::unique_ptr<Convolution>> make_convolution(const ConvolutionShape& shape) override {
    return cpu::make_convolution(shape, workplace_);
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
  void split(std::int64_t n, const Body& body) {
    pool_.split(n, kGrain,
                [&](std::int64_t first, std::int64_t last, int) { body(first, last - first); });
  }
  template <class Body>
  void split_rows(SoftmaxShape shape, const Body& body) {
    const std::int64_t row = std::max<std::int64_t>(1, shape.classes * shape.inner);
    pool_.split(shape.outer, std::max<std::int64_t>(1, kGrain / row),
                [&](std::int64_t first, std::int64_t last, int) { body(first, last); });
  }

  cpu::ThreadPool pool_;
  cpu::Scratch scratch_;
  cpu::Workplace workplace_;
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
