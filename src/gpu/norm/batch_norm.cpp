#include "gpu/norm/batch_norm.hpp"

#include <speedo/base/assert.hpp>

#include "gpu/norm/batch_norm_kernels.hpp"

namespace speedo::gpu {
namespace {

class QueuedBatchNorm final : public BatchNorm {
 public:
  QueuedBatchNorm(Queue& queue, Device& device, const BatchNormShape& shape)
      : queue_(queue), device_(device), shape_(shape) {}

  OperationInfo info() const override { return {.kernel = "cuda", .workspace_bytes = bytes()}; }

  Result<void> take_memory() override {
    if (memory_.bytes() > 0 || bytes() == 0) return {};
    SPEEDO_ASSIGN(memory_, device_.allocate(static_cast<std::size_t>(bytes())));
    return {};
  }

  void forward(const float* src, const float* gamma, const float* beta, float* mean,
               float* variance, float* dst) override {
    SPEEDO_ASSERT(!shape_.is_fixed);
    if (is_empty()) return;
    norm_statistics(queue_, shape_, src, {gamma, beta}, {mean, variance}, coefficients());
    norm_forward(queue_, shape_, {src, addend()}, mean, coefficients(), dst);
  }

  void forward_fixed(const float* src, const float* mean, const float* variance, const float* gamma,
                     const float* beta, float* dst) override {
    SPEEDO_ASSERT(shape_.is_fixed);
    if (is_empty()) return;
    norm_fixed_statistics(queue_, shape_, variance, {gamma, beta}, coefficients());
    norm_forward(queue_, shape_, {src, addend()}, mean, coefficients(), dst);
  }

  void add_next(const float* addend) override { addend_ = addend; }

  void backward(const BatchNormGradient& gradient) override {
    SPEEDO_ASSERT(shape_.trains_gamma || gradient.gamma_grad == nullptr);
    if (is_empty()) return;
    if (!shape_.is_fixed || gradient.gamma_grad != nullptr || gradient.beta_grad != nullptr) {
      norm_gradient_sums(queue_, shape_, gradient, coefficients());
    }
    norm_backward(queue_, shape_, gradient, coefficients());
  }

 private:
  std::int64_t bytes() const {
    return 4 * shape_.channels * static_cast<std::int64_t>(sizeof(float));
  }
  bool is_empty() const { return shape_.batch * shape_.channels * shape_.spatial == 0; }

  const float* addend() const {
    SPEEDO_ASSERT(shape_.adds == (addend_ != nullptr));
    return addend_;
  }

  NormCoefficients coefficients() {
    SPEEDO_ASSERT(take_memory().has_value());
    float* const first = memory_.as_floats();
    const std::int64_t n = shape_.channels;
    return {first, first + n, first + 2 * n, first + 3 * n};
  }

  Queue& queue_;
  Device& device_;
  BatchNormShape shape_;
  Buffer memory_;
  const float* addend_ = nullptr;
};

}  // namespace

// With fixed statistics the pass may have been in place: the sign that the ReLU took is dst's.
BackwardReads batch_norm_reads(const BatchNormShape& shape) {
  return {.src = !shape.is_fixed || shape.trains_gamma,
          .dst = shape.is_fixed && shape.activation.has_value() && !shape.adds};
}

std::unique_ptr<BatchNorm> make_batch_norm(Queue& queue, Device& device,
                                           const BatchNormShape& shape) {
  return std::make_unique<QueuedBatchNorm>(queue, device, shape);
}

}  // namespace speedo::gpu
