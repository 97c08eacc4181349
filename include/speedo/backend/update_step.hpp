#pragma once

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

}  // namespace speedo
