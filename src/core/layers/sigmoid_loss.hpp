#pragma once

#include "core/layers/loss_layer.hpp"

namespace speedo {

// SigmoidCrossEntropyLoss: the cross-entropy of the sigmoids of bottom 0 against targets in [0, 1],
// bottom 1, divided by a normalizer: the batch size (the default), the count of all targets or of
// those that are not ignored, or 1; never less than 1.
class SigmoidLossLayer final : public LossLayer {
 public:
  using LossLayer::LossLayer;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  LossCounts counts_;  // `valid` of the last forward()
};

}  // namespace speedo
