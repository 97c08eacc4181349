#pragma once

#include <speedo/core/layer.hpp>

namespace speedo {

// Lets several layers read one blob: the tops share the bottom's data, and their gradients add up.
class SplitLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {1, 1, 1, -1}; }
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  LayoutRule layout_rule() const override { return LayoutRule::kSame; }
  bool takes_bfloat16() const override { return true; }
  bool backward_reads_bottom(int) const override { return false; }
  bool backward_reads_top(int) const override { return false; }
  bool gradients_may_share(int, int) const override { return true; }
  Result<void> forward(Tensors, Tensors) override { return {}; }
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;
};

}  // namespace speedo
