#pragma once

#include <speedo/core/layer.hpp>

namespace speedo {

// 1/(2N) * sum (bottom 0 - bottom 1)^2, N being the first axis. Both bottoms get gradients.
class EuclideanLossLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {2, 2, 1, 1}; }
  bool auto_tops() const override { return true; }
  float default_loss_weight(int /*top*/) const override { return 1.0F; }
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  Tensor difference_;
};

}  // namespace speedo
