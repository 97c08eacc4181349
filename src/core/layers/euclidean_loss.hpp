#pragma once

#include <speedo/core/layer.hpp>

#include "core/layers/queued_loss_sums.hpp"
#include "core/layers/support.hpp"

namespace speedo {

// 1/(2N) * sum (bottom 0 - bottom 1)^2, N being the first axis. Both bottoms get gradients.
class EuclideanLossLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {2, 2, 1, 1}; }
  bool auto_tops() const override { return true; }
  float default_loss_weight(int /*top*/) const override { return 1.0F; }
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> prepare(Tensors bottoms, Tensors tops, bool trains) override;
  bool backward_reads_bottom(int) const override { return false; }
  bool backward_reads_top(int) const override { return false; }
  std::int64_t workspace_bytes() const override {
    return bytes_of(difference_) + sums_.bytes();
  }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;
  Result<void> queue_forward(DeviceSteps& steps, Tensors bottoms, Tensors tops) override;
  void queue_backward(DeviceSteps& steps, Tensors tops, const std::vector<bool>& propagate,
                      Tensors bottoms) override;

 private:
  void subtract(Tensors bottoms);

  QueuedLossSums sums_;
  Tensor difference_{Shape{0}};
};

}  // namespace speedo
