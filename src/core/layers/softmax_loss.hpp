#pragma once

#include "core/layers/class_loss.hpp"

namespace speedo {

// Cross-entropy of the softmax of bottom 0 along `axis` against the classes that the labels name.
class SoftmaxWithLossLayer final : public ClassLossLayer {
 public:
  using ClassLossLayer::ClassLossLayer;
  LayerArity arity() const override { return {2, 2, 1, 2}; }
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  bool backward_reads_bottom(int bottom) const override { return bottom == 1; }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;
  Result<void> queue_forward(DeviceSteps& steps, Tensors bottoms, Tensors tops) override;
  void queue_backward(DeviceSteps& steps, Tensors tops, const std::vector<bool>& propagate,
                      Tensors bottoms) override;

 private:
  DeviceSteps::Labelled labelled(Tensors bottoms) const;
};

}  // namespace speedo
