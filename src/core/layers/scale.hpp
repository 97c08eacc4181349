#pragma once

#include <speedo/core/layer.hpp>

#include "core/layers/bottom_copy.hpp"
#include "core/layers/fused_activation.hpp"

namespace speedo {

// top = bottom x scale (+ bias), both repeated over the axes that the scale does not have. The
// scale is learned, or a second bottom; the bias is learned. May work in place.
class ScaleLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {1, 2, 1, 1}; }
  bool allows_in_place() const override { return true; }
  bool keeps_bottom() const override { return true; }
  LayoutRule layout_rule() const override { return layout_rule_; }
  bool takes_bfloat16() const override { return true; }
  bool backward_reads_bottom(int bottom) const override;
  bool backward_reads_top(int) const override { return false; }
  bool gradients_may_share(int, int) const override { return is_learned_; }
  std::int64_t workspace_bytes() const override;
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> prepare(Tensors bottoms, Tensors tops, bool trains) override;
  Fused fuse(Layer& next, const FusionTerms& terms) override {
    return activation_.take(next, terms);
  }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

  // For the layer that does this one's work. Requires: bound parameters.
  bool is_learned_per_channel() const { return is_per_channel_; }
  const float* scale() { return parameter(0).data(); }
  const float* bias() { return has_bias_ ? parameter(bias_index()).data() : nullptr; }
  bool trains_scale() const { return parameter_needs_grad(0); }
  // Null if it is not trained.
  float* scale_grad() { return trains_scale() ? parameter(0).grad() : nullptr; }
  float* bias_grad();

 private:
  int bias_index() const { return is_learned_ ? 1 : 0; }
  bool scale_is_trained() const { return !is_learned_ || parameter_needs_grad(0); }

  bool is_learned_ = true, has_bias_ = false, is_per_channel_ = false;
  ArrayShape shape_;  // the bottom as outer x scale x inner
  LayoutRule layout_rule_ = LayoutRule::kPlain;
  FusedActivation activation_;
  BottomCopy copy_;
};

}  // namespace speedo
