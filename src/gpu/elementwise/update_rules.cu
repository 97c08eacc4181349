// Solvers' update rules: each reads and writes all its arrays once.

#include "gpu/elementwise/elementwise.hpp"

#include <cfloat>
#include <cmath>

#include "gpu/launch/launch.hpp"
#include "gpu/support/elements.hpp"

namespace speedo::gpu {
namespace {

// What becomes of an update: it is left where the gradient was, and taken from the weights too in a
// step.
struct UpdateArrays {
  const float* weights;
  float* grad;
  float* stepped;  // the weights, or null
};

SPEEDO_HOST_DEVICE bool is_halted(const SgdStep& step) {
  return step.guard != nullptr && step.guard[1] != 0.0F;
}

SPEEDO_HOST_DEVICE float rate_of(const SgdStep& step) {
  return step.guard == nullptr ? step.rate : step.guard[0] * step.rate;
}

SPEEDO_HOST_DEVICE float decayed(const SgdStep& step, float weight, float grad) {
  const float l1 = weight > 0.0F ? step.l1 : (weight < 0.0F ? -step.l1 : 0.0F);
  return step.scale * grad + (step.l2 * weight + l1);
}

template <class Place, class Values>
SPEEDO_HOST_DEVICE void leave(Place at, const UpdateArrays& arrays, float sign, Values weight,
                              Values update) {
  const auto signed_by = [&](float u) { return sign * u; };
  at.store(arrays.grad, each(signed_by, update));
  if (arrays.stepped == nullptr) return;
  at.store(arrays.stepped, each([](float w, float u) { return w - u; }, weight, update));
}

struct SgdKernel {
  static constexpr const char* kName = "sgd";
  std::int64_t n;
  SgdStep step;
  UpdateArrays arrays;
  float* history;
  bool by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    if (is_halted(step)) return;
    const float rate = rate_of(step);
    for_each_element(lane, n, by_fours, [&](auto at) {
      const auto weight = at.load(arrays.weights);
      const auto update =
          each([&](float w, float g,
                   float h) { return step.momentum * h + rate * decayed(step, w, g); },
               weight, at.load(arrays.grad), at.load(history));
      at.store(history, update);
      leave(at, arrays, step.sign, weight, update);
    });
  }
};

SPEEDO_HOST_DEVICE float as_squares(float value) {
  return value > 0.0F ? (value < FLT_MAX ? value : FLT_MAX) : 0.0F;
}

struct AdaptiveKernel {
  static constexpr const char* kName = "adaptive";
  std::int64_t n;
  AdaptiveStep step;
  UpdateArrays arrays;
  AdaptiveHistories histories;
  bool by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    if (is_halted(step.base)) return;
    const float rate = rate_of(step.base);
    const bool has_second =
        step.kind == AdaptiveKind::kAdaDelta || step.kind == AdaptiveKind::kAdam;
    for_each_element(lane, n, by_fours, [&](auto at) {
      const auto weight = at.load(arrays.weights);
      const auto g = each([&](float w, float v) { return decayed(step.base, w, v); }, weight,
                          at.load(arrays.grad));
      const auto first_before = at.load(histories.first);
      const auto first = each([&](float a, float v) { return first_of(a, v); }, first_before, g);
      at.store(histories.first, first);
      if (!has_second) {
        const auto update = each(
            [&](float a, float v) { return rate * (v / (std::sqrt(a) + step.delta)); },
            first, g);
        leave(at, arrays, step.base.sign, weight, update);
        return;
      }
      const auto before = at.load(histories.second);
      const auto direction =
          each([&](float a, float b, float v) { return direction_of(a, b, v); }, first, before, g);
      at.store(histories.second, each([&](float b, float v, float u) { return second_of(b, v, u); },
                                      before, g, direction));
      const auto update = each([&](float u) { return rate * u; }, direction);
      leave(at, arrays, step.base.sign, weight, update);
    });
  }

 private:
  // d a + (1 - d) x^2.
  SPEEDO_HOST_DEVICE float mean_square(float squares, float x) const {
    const float d = step.squares_decay;
    return as_squares(d * squares + (1.0F - d) * (x * x));
  }
  SPEEDO_HOST_DEVICE float first_of(float a, float g) const {
    if (step.kind == AdaptiveKind::kAdaGrad) return as_squares(g * g + a);
    if (step.kind != AdaptiveKind::kAdam) return mean_square(a, g);
    return step.base.momentum * a + (1.0F - step.base.momentum) * g;
  }
  // Of the rules with two histories, from the first one as it is now and the second as it was.
  SPEEDO_HOST_DEVICE float direction_of(float a, float b, float g) const {
    if (step.kind == AdaptiveKind::kAdam) return a / (std::sqrt(mean_square(b, g)) + step.delta);
    return g * std::sqrt((as_squares(b) + step.delta) / (a + step.delta));
  }
  SPEEDO_HOST_DEVICE float second_of(float b, float g, float direction) const {
    if (step.kind == AdaptiveKind::kAdam) return mean_square(b, g);
    return mean_square(as_squares(b), direction);
  }
};

void sgd(Queue& queue, std::int64_t n, const SgdStep& step, const UpdateArrays& arrays,
         float* history) {
  if (n == 0) return;
  launch(queue, grid_for(queue, n, 4),
         SgdKernel{n, step, arrays, history, are_aligned(arrays.weights, arrays.grad, history)});
}

void adaptive(Queue& queue, std::int64_t n, const AdaptiveStep& step, const UpdateArrays& arrays,
              AdaptiveHistories histories) {
  if (n == 0) return;
  launch(
      queue, grid_for(queue, n, 4),
      AdaptiveKernel{n, step, arrays, histories,
                     are_aligned(arrays.weights, arrays.grad, histories.first, histories.second)});
}

}  // namespace

void sgd_update(Queue& queue, std::int64_t n, const SgdStep& step, const float* weights,
                float* history, float* grad) {
  sgd(queue, n, step, {weights, grad, nullptr}, history);
}
void sgd_step(Queue& queue, std::int64_t n, const SgdStep& step, float* weights, float* history,
              float* grad) {
  sgd(queue, n, step, {weights, grad, weights}, history);
}
void adaptive_update(Queue& queue, std::int64_t n, const AdaptiveStep& step, const float* weights,
                     AdaptiveHistories histories, float* grad) {
  adaptive(queue, n, step, {weights, grad, nullptr}, histories);
}
void adaptive_step(Queue& queue, std::int64_t n, const AdaptiveStep& step, float* weights,
                   AdaptiveHistories histories, float* grad) {
  adaptive(queue, n, step, {weights, grad, weights}, histories);
}

}  // namespace speedo::gpu
