#pragma once

#include <speedo/core/layer.hpp>

namespace speedo {

// top = (shift + scale x bottom) ^ power, and a constant if scale or power is 0. May work in place.
class PowerLayer final : public Layer {
 public:
  using Layer::Layer;
  bool allows_in_place() const override { return true; }
  LayoutRule layout_rule() const override;
  bool backward_reads_bottom(int) const override { return !is_linear() && !keeps_slope_; }
  bool backward_reads_top(int) const override { return false; }
  bool gradients_may_share(int, int) const override { return is_linear() || keeps_slope_; }
  std::int64_t workspace_bytes() const override;
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> prepare(Tensors bottoms, Tensors tops, bool trains) override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  float factor() const { return scale_ * power_; }
  // The slope does not depend on the bottom.
  bool is_linear() const { return factor() == 0.0F || power_ == 1.0F; }
  void compute(std::int64_t count, const float* x, float exponent, float* y);
  void compute_slope(std::int64_t count, const float* x, float* slope);

  float power_ = 1.0F, scale_ = 1.0F, shift_ = 0.0F;
  bool keeps_slope_ = false;
  Tensor slope_;  // of the bottom's values, where the top takes their place
};

}  // namespace speedo
