#include "gpu/softmax/losses.hpp"

#include <speedo/backend/labels.hpp>

#include "gpu/softmax/loss_sums.hpp"
#include "gpu/support/divisor.hpp"

namespace speedo::gpu {
namespace {

// max(0, 1 - s x), where s is 1 for the label's class and -1 for the others.
SPEEDO_HOST_DEVICE float margin(bool is_label, float score) {
  const float m = is_label ? 1.0F - score : 1.0F + score;
  return m > 0.0F ? m : 0.0F;
}

// Of rows x classes scores.
struct HingeTerms {
  static constexpr const char* kName = "hinge_loss";
  Divisor classes;
  bool squares;
  const float* scores;
  const float* labels;

  SPEEDO_HOST_DEVICE void operator()(std::int64_t i, LossPart& part) const {
    const std::int64_t row = classes.quotient(i), k = i - row * classes.value();
    const std::int64_t label = label_index(labels[row], classes.value());
    if (label < 0) return part.find_bad(row);
    const auto m = static_cast<double>(margin(label == k, scores[i]));
    part.sum += squares ? m * m : m;
    if (k == 0) part.valid += 1;
  }
};

struct HingeBackwardKernel {
  static constexpr const char* kName = "hinge_loss_backward";
  std::int64_t n;
  Divisor classes;
  bool squares;
  const float* scores;
  const float* labels;
  float scale;
  float* grad;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for (std::int64_t i = lane.first(); i < n; i += lane.stride()) {
      const std::int64_t row = classes.quotient(i), k = i - row * classes.value();
      const bool is_label = label_index(labels[row], classes.value()) == k;
      const float m = margin(is_label, scores[i]);
      const float slope = squares ? 2.0F * m : (m > 0.0F ? 1.0F : 0.0F);
      grad[i] = (is_label ? -slope : slope) * scale;
    }
  }
};

}  // namespace

void hinge_loss(Queue& queue, const Backend::HingeShape& shape, const float* scores,
                const float* labels, LossSums* result) {
  sum_loss(
      queue, shape.rows * shape.classes,
      HingeTerms{Divisor(std::max<std::int64_t>(shape.classes, 1)), shape.squares, scores, labels},
      labels, result);
}

void hinge_loss_backward(Queue& queue, const Backend::HingeShape& shape, const float* scores,
                         const float* labels, float scale, float* grad) {
  const std::int64_t n = shape.rows * shape.classes;
  if (n == 0) return;
  launch(
      queue, grid_for(queue, n),
      HingeBackwardKernel{n, Divisor(shape.classes), shape.squares, scores, labels, scale, grad});
}

}  // namespace speedo::gpu
