#pragma once

#include <speedo/core/layer.hpp>

namespace speedo {

// top = max(bottom, 0) + negative_slope * min(bottom, 0). May work in place.
class ReluLayer final : public Layer {
 public:
  using Layer::Layer;
  bool allows_in_place() const override { return true; }
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  LayoutRule layout_rule() const override { return LayoutRule::kSame; }
  bool backward_reads_bottom(int) const override { return slope() < 0.0F; }
  bool backward_reads_top(int) const override { return !(slope() < 0.0F); }
  bool values_may_share(int, int) const override { return true; }
  bool gradients_may_share(int, int) const override { return true; }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

  float slope() const;
};

}  // namespace speedo
