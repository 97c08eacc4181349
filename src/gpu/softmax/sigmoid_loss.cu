// The cross-entropy of sigmoids. A term is log(1 + e^-|x|) - x (t - 1) where x >= 0, and
// log(1 + e^-|x|) - x t elsewhere: neither overflows, and neither is a difference of large numbers
// where it is small.

#include "gpu/softmax/losses.hpp"

#include <cmath>

#include "gpu/elementwise/unary_math.hpp"
#include "gpu/softmax/loss_sums.hpp"

namespace speedo::gpu {
namespace {

struct SigmoidLossTerms {
  static constexpr const char* kName = "sigmoid_loss";
  const float* x;
  const float* targets;
  IgnoredLabel ignored;

  SPEEDO_HOST_DEVICE void operator()(std::int64_t i, LossPart& part) const {
    const float v = x[i], t = targets[i];
    if (ignored(t)) return;
    const float tail = std::log1p(std::exp(-std::fabs(v)));
    part.sum += static_cast<double>(tail - v * (v >= 0.0F ? t - 1.0F : t));
    part.valid += 1;
  }
};

struct SigmoidLossBackwardKernel {
  static constexpr const char* kName = "sigmoid_loss_backward";
  std::int64_t n;
  const float* x;
  const float* targets;
  IgnoredLabel ignored;
  LossScale scale;
  float* grad;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    const float factor = scale();
    for (std::int64_t i = lane.first(); i < n; i += lane.stride()) {
      grad[i] = ignored(targets[i]) ? 0.0F : factor * (sigmoid(x[i]) - targets[i]);
    }
  }
};

}  // namespace

void sigmoid_loss(Queue& queue, std::int64_t n, const float* x, const LossLabels& targets,
                  LossSums* result) {
  sum_loss(queue, n, SigmoidLossTerms{x, targets.labels, IgnoredLabel(targets.ignored)},
           targets.labels, result);
}

void sigmoid_loss_backward(Queue& queue, std::int64_t n, const float* x, const LossLabels& targets,
                           const LossScale& scale, float* grad) {
  if (n == 0) return;
  launch(
      queue, grid_for(queue, n),
      SigmoidLossBackwardKernel{n, x, targets.labels, IgnoredLabel(targets.ignored), scale, grad});
}

}  // namespace speedo::gpu
