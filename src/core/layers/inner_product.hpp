#pragma once

#include <speedo/backend/backend.hpp>
#include <speedo/core/layer.hpp>

#include "core/layers/fused_activation.hpp"

namespace speedo {

// Fully connected layer: top = bottom * W^T + b.
//
// The bottom is seen as rows x inputs: axes before `axis` count rows, the others are flattened. W
// is outputs x inputs, or inputs x outputs with `transpose`.
class InnerProductLayer final : public Layer {
 public:
  using Layer::Layer;
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Fused fuse(Layer& next, const FusionTerms& terms) override {
    return activation_.take(next, terms);
  }
  bool backward_reads_bottom(int) const override { return parameter_needs_grad(0); }
  bool backward_reads_top(int) const override { return false; }
  OperationInfo info() const override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;
  std::optional<FactorShape> gradient_factors() const override;
  void leave_factors(bool leaves) override { leaves_factors_ = leaves; }
  bool can_overwrite_gradient() const override { return parameter_needs_grad(0); }
  void overwrite_gradient() override { overwrites_ = true; }

 private:
  void add_weight_gradient(const float* top_grad, const float* bottom);
  // The top as rows of one position, an output a channel.
  ChannelView rows_view() const { return {{rows_, outputs_, 1}, {}}; }

  int axis_ = 1;
  bool has_bias_ = true;
  bool transpose_ = false;
  bool leaves_factors_ = false;
  bool overwrites_ = false;  // the gradient of the weights, in the next backward pass
  std::int64_t rows_ = 0, inputs_ = 0, outputs_ = 0;
  FusedActivation activation_;
};

}  // namespace speedo
