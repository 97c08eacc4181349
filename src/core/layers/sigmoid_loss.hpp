#pragma once

#include <speedo/backend/device_steps.hpp>

#include "core/layers/loss_layer.hpp"
#include "core/layers/queued_loss_sums.hpp"

namespace speedo {

// SigmoidCrossEntropyLoss: the cross-entropy of the sigmoids of bottom 0 against targets in [0, 1],
// bottom 1, divided by a normalizer: the batch size (the default), the count of all targets or of
// those that are not ignored, or 1; never less than 1.
class SigmoidLossLayer final : public LossLayer {
 public:
  using LossLayer::LossLayer;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  Result<void> prepare(Tensors bottoms, Tensors tops, bool trains) override;
  std::int64_t workspace_bytes() const override { return sums_.bytes(); }
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;
  Result<void> queue_forward(DeviceSteps& steps, Tensors bottoms, Tensors tops) override;
  void queue_backward(DeviceSteps& steps, Tensors tops, const std::vector<bool>& propagate,
                      Tensors bottoms) override;

 private:
  DeviceSteps::Labelled labelled(Tensors bottoms) const;
  QueuedLoss queued_loss(Tensors tops);

  QueuedLossSums sums_;
  LossCounts counts_;  // `valid` of the last forward()
};

}  // namespace speedo
