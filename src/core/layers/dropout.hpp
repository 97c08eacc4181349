#pragma once

#include <speedo/core/layer.hpp>

#include "core/layers/support.hpp"

namespace speedo {

// Sets a random share of the elements to zero and scales the others by 1/(1-ratio) while training;
// passes them on unchanged when testing. May work in place.
class DropoutLayer final : public Layer {
 public:
  using Layer::Layer;
  bool allows_in_place() const override { return true; }
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  LayoutRule layout_rule() const override { return LayoutRule::kSame; }
  bool takes_bfloat16() const override { return true; }
  Result<void> prepare(Tensors bottoms, Tensors tops, bool trains) override;
  bool backward_reads_bottom(int) const override { return false; }
  bool backward_reads_top(int) const override { return false; }
  bool values_may_share(int, int) const override { return true; }
  bool gradients_may_share(int, int) const override { return true; }
  std::int64_t workspace_bytes() const override { return bytes_of(mask_); }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  float ratio_ = 0.5F;
  Tensor mask_{Shape{0}};
};

}  // namespace speedo
