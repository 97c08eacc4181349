#pragma once

#include <cstdint>

namespace speedo {

// What an update rule does with a range of one parameter; see Backend::sgd_update.
struct SgdStep {
  float rate = 0.0F;  // learning rate x lr_mult
  float momentum = 0.0F;
  float scale = 1.0F;  // applied to the gradient first: clip factor / iter_size
  float l2 = 0.0F;     // added: l2 x weight
  float l1 = 0.0F;     // added: l1 x sign(weight), sign(0) = 0
  float sign = 1.0F;   // of the update that sgd_update() leaves: 1 or -1
  // Null, or two floats of the device (DeviceSteps::guard()), where a backend has those: what
  // `rate` is multiplied with first, and whether weights and histories stay as they are, unless it
  // is 0.
  const float* guard = nullptr;
};

// A range of arrays that has a rate and decays of its own, in the place of a step's.
struct UpdateRange {
  std::int64_t first = 0, count = 0;
  float rate = 0.0F, l2 = 0.0F, l1 = 0.0F;
};

constexpr SgdStep step_of(SgdStep step, const UpdateRange& range) {
  step.rate = range.rate;
  step.l2 = range.l2;
  step.l1 = range.l1;
  return step;
}

// Rules that divide each element's gradient by the size of those before it, as Caffe has them.
// g: the gradient, scaled and with decay, of a step; a and b: its histories, first and second.
enum class AdaptiveKind {
  kAdaGrad,   // a += g^2; update = rate g / (sqrt(a) + delta)
  kRmsProp,   // a = d a + (1 - d) g^2, d = squares_decay; update as above
  kAdaDelta,  // a as of RMSProp; u = g sqrt((b + delta) / (a + delta)); b = d b + (1 - d) u^2;
              // update = rate u
  kAdam,      // a = m a + (1 - m) g, m = momentum; b = d b + (1 - d) g^2;
              // update = rate a / (sqrt(b) + delta); the rate has Adam's correction in it
};

struct AdaptiveStep {
  AdaptiveKind kind = AdaptiveKind::kAdaGrad;
  SgdStep base = {};
  float squares_decay = 0.0F;
  float delta = 0.0F;
};

// Means and sums of squares are never negative, nor more than the largest float: whatever rounding
// has made of them before (a codec's, or an average's), and however large a gradient is.
struct AdaptiveHistories {
  float* first = nullptr;
  float* second = nullptr;  // of kAdaDelta and kAdam
};

constexpr AdaptiveStep step_of(AdaptiveStep step, const UpdateRange& range) {
  step.base = step_of(step.base, range);
  return step;
}

// The histories from an element on.
constexpr AdaptiveHistories advanced(const AdaptiveHistories& histories, std::int64_t at) {
  return {histories.first + at, histories.second == nullptr ? nullptr : histories.second + at};
}

}  // namespace speedo
