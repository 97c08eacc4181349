#pragma once

#include <speedo/core/layer.hpp>

namespace speedo {

// top = 1 / (1 + exp(-bottom)). May work in place.
class SigmoidLayer final : public Layer {
 public:
  using Layer::Layer;
  bool allows_in_place() const override { return true; }
  // sigmoid(0) is not 0.
  LayoutRule layout_rule() const override { return LayoutRule::kSameUnpadded; }
  bool backward_reads_bottom(int) const override { return false; }
  bool gradients_may_share(int, int) const override { return true; }
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;
};

}  // namespace speedo
