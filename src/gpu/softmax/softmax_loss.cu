#include "gpu/softmax/losses.hpp"

#include <cfloat>
#include <cmath>

#include <speedo/backend/labels.hpp>

#include "gpu/softmax/loss_sums.hpp"
#include "gpu/support/divisor.hpp"

namespace speedo::gpu {
namespace {

// Of outer x inner labels.
struct SoftmaxLossTerms {
  static constexpr const char* kName = "softmax_loss";
  Divisor inner;
  std::int64_t classes;
  const float* probability;
  const float* labels;
  IgnoredLabel ignored;

  SPEEDO_HOST_DEVICE void operator()(std::int64_t i, LossPart& part) const {
    if (ignored(labels[i])) return;
    const std::int64_t label = label_index(labels[i], classes);
    if (label < 0) return part.find_bad(i);
    const std::int64_t row = inner.quotient(i), width = inner.value();
    const float p = probability[(row * classes + label) * width + i - row * width];
    part.sum -= std::log(static_cast<double>(p < FLT_MIN ? FLT_MIN : p));
    part.valid += 1;
  }
};

struct SoftmaxLossBackwardKernel {
  static constexpr const char* kName = "softmax_loss_backward";
  std::int64_t n;
  Divisor inner, classes;
  const float* probability;
  const float* labels;
  IgnoredLabel ignored;
  LossScale scale;
  float* grad;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    const float factor = scale();
    for (std::int64_t i = lane.first(); i < n; i += lane.stride()) {
      const std::int64_t line = inner.quotient(i), outer = classes.quotient(line);
      const std::int64_t k = line - outer * classes.value();
      const float label = labels[outer * inner.value() + i - line * inner.value()];
      const float wanted = label_index(label, classes.value()) == k ? 1.0F : 0.0F;
      grad[i] = ignored(label) ? 0.0F : factor * (probability[i] - wanted);
    }
  }
};

struct MeanLossKernel {
  static constexpr const char* kName = "mean_loss";
  const LossSums* sums;
  double normalizer;
  float* value;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    if (lane.thread != 0) return;
    const double mean = sums->sum / LossScale::divisor(normalizer, *sums);
    *value = sums->bad_index >= 0 ? NAN : static_cast<float>(mean);
  }
};

}  // namespace

void mean_loss(Queue& queue, const LossSums* sums, double normalizer, float* value) {
  launch(queue, Grid{1, 32}, MeanLossKernel{sums, normalizer, value});
}

void softmax_loss(Queue& queue, Backend::SoftmaxShape shape, const float* probability,
                  const LossLabels& labels, LossSums* result) {
  sum_loss(queue, shape.outer * shape.inner,
           SoftmaxLossTerms{Divisor(std::max<std::int64_t>(shape.inner, 1)), shape.classes,
                            probability, labels.labels, IgnoredLabel(labels.ignored)},
           labels.labels, result);
}

void softmax_loss_backward(Queue& queue, Backend::SoftmaxShape shape, const float* probability,
                           const LossLabels& labels, const LossScale& scale, float* grad) {
  const std::int64_t n = shape.outer * shape.classes * shape.inner;
  if (n == 0) return;
  launch(queue, grid_for(queue, n),
         SoftmaxLossBackwardKernel{n, Divisor(shape.inner), Divisor(shape.classes), probability,
                                   labels.labels, IgnoredLabel(labels.ignored), scale, grad});
}

}  // namespace speedo::gpu
