#pragma once

#include <vector>

#include "core/layers/loss_layer.hpp"
#include "core/layers/support.hpp"

namespace speedo {

// 1/(2N) times the sum over N pairs (bottoms 0 and 1) at distance d of d^2 for similar ones (bottom
// 2 is not 0), and of max(0, margin - d)^2 for others (Hadsell et al. 2006); with legacy_version
// those count max(0, margin - d^2). Factors of pairs are computed on the host.
class ContrastiveLossLayer final : public LossLayer {
 public:
  using LossLayer::LossLayer;
  LayerArity arity() const override { return {3, 3, 1, 1}; }
  bool allow_force_backward(int bottom) const override { return bottom != 2; }
  bool can_propagate(int bottom) const override { return bottom != 2; }
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> prepare(Tensors bottoms, Tensors tops, bool trains) override;
  bool backward_reads_bottom(int) const override { return false; }
  std::int64_t workspace_bytes() const override {
    return bytes_of(difference_) + bytes_of(per_pair_);
  }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  // The loss of a pair, and what its difference is multiplied by in the gradient.
  struct PairLoss {
    double loss, factor;
  };
  PairLoss pair_loss(float similar, float square) const;

  std::int64_t pairs_ = 0, features_ = 0;
  Tensor difference_{Shape{0}}, per_pair_{Shape{0}};
  std::vector<float> squares_, similar_, factors_;  // of pairs, on the host
};

}  // namespace speedo
