#pragma once

#include <speedo/core/layer.hpp>

#include "core/layers/fused_activation.hpp"

namespace speedo {

// top = bottom + bias, repeated over the axes that the bias does not have. The bias is learned, or
// a second bottom. May work in place.
class BiasLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {1, 2, 1, 1}; }
  bool allows_in_place() const override { return true; }
  LayoutRule layout_rule() const override { return layout_rule_; }
  bool takes_bfloat16() const override { return true; }
  bool backward_reads_bottom(int) const override { return false; }
  bool backward_reads_top(int) const override { return false; }
  bool gradients_may_share(int bottom, int) const override { return bottom == 0; }
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Fused fuse(Layer& next, const FusionTerms& terms) override {
    return activation_.take(next, terms);
  }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  void sum_gradient(const Tensor& top, Tensors bottoms, bool propagate_bias);

  bool is_learned_ = true;
  ArrayShape shape_;  // the bottom as outer x bias x inner
  LayoutRule layout_rule_ = LayoutRule::kPlain;
  FusedActivation activation_;
};

}  // namespace speedo
