#pragma once

#include <speedo/core/layer.hpp>

namespace speedo {

// Lets several layers read one blob: the tops share the bottom's data, and their gradients add up.
// Does the backward pass of an activation that made the bottom in place.
class SplitLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {1, 1, 1, -1}; }
  bool apply_slope(const std::optional<UnaryOp>& of) override {
    slope_ = of;
    return true;
  }
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  LayoutRule layout_rule() const override { return LayoutRule::kSame; }
  bool takes_bfloat16() const override { return true; }
  bool backward_reads_bottom(int) const override { return slope_.has_value(); }
  bool backward_reads_top(int) const override { return false; }
  bool gradients_may_share(int, int) const override { return true; }
  Result<void> forward(Tensors, Tensors) override { return {}; }
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  std::optional<UnaryOp> slope_;
  std::vector<const float*> gradients_;  // of a pass
};

}  // namespace speedo
