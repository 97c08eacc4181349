#include "cpu/cpu_backend.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "cpu/convolution.hpp"
#include "cpu/elementwise.hpp"
#include "cpu/gemm.hpp"
#include "cpu/lrn.hpp"
#include "cpu/memory.hpp"
#include "cpu/pooling.hpp"
#include "cpu/softmax.hpp"
#include "cpu/thread_pool.hpp"

namespace speedo {
namespace {

// Elements that make it worth waking another thread.
constexpr std::int64_t kGrain = 16384;
constexpr int kThreadsMax = 256;

int default_threads() {
  int threads = 1;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) threads = CPU_COUNT(&allowed);
  if (const char* wanted = std::getenv("OPENBLAS_NUM_THREADS"); wanted != nullptr) {
    const long limit = std::strtol(wanted, nullptr, 10);
    if (limit >= 1) threads = static_cast<int>(std::min<long>(threads, limit));
  }
  return std::clamp(threads, 1, kThreadsMax);
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(int threads) : pool_(threads), scratch_(threads) {
    cpu::use_one_blas_thread();
  }

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
  double dot(std::int64_t n, const float* x, const float* y) override { return cpu::dot(n, x, y); }
  double sum_abs(std::int64_t n, const float* x) override { return cpu::sum_abs(n, x); }

  void add_row(std::int64_t rows, std::int64_t columns, const float* bias, float* y) override {
    for (std::int64_t r = 0; r < rows; ++r) cpu::axpby(columns, 1.0F, bias, 1.0F, y + r * columns);
  }
  void sum_rows(std::int64_t rows, std::int64_t columns, const float* x, float* sum) override {
    for (std::int64_t r = 0; r < rows; ++r) cpu::axpby(columns, 1.0F, x + r * columns, 1.0F, sum);
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

  void relu_forward(std::int64_t n, float negative_slope, const float* x, float* y) override {
    split(n, [&](std::int64_t at, std::int64_t count) {
      cpu::relu_forward(count, negative_slope, x + at, y + at);
    });
  }
  void relu_backward(std::int64_t n, float negative_slope, const float* x, const float* y_grad,
                     float* x_grad) override {
    split(n, [&](std::int64_t at, std::int64_t count) {
      cpu::relu_backward(count, negative_slope, x + at, y_grad + at, x_grad + at);
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

  Result<std::unique_ptr<Convolution>> make_convolution(const ConvolutionShape& shape) override {
    return cpu::make_convolution(shape, pool_, scratch_);
  }
  Result<std::unique_ptr<Pooling>> make_pooling(const PoolingShape& shape) override {
    return cpu::make_pooling(shape, pool_, scratch_);
  }
  Result<std::unique_ptr<Lrn>> make_lrn(const LrnShape& shape) override {
    return cpu::make_lrn(shape, pool_, scratch_);
  }

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
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(int threads) {
  return std::make_unique<CpuBackend>(threads > 0 ? std::min(threads, kThreadsMax)
                                                  : default_threads());
}

}  // namespace speedo
