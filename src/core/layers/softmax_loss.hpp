#pragma once

#include <speedo/backend/backend.hpp>
#include <speedo/core/layer.hpp>

#include "core/layers/support.hpp"

namespace speedo {

// Cross-entropy of the softmax of bottom 0 against the integer labels of bottom 1, divided by a
// normalizer: the count of labels that are not ignored (the default), of all labels, of rows, or 1;
// never less than 1. Top 0 is the loss, the optional top 1 the probabilities.
class SoftmaxWithLossLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {2, 2, 1, 2}; }
  bool auto_tops() const override { return true; }
  float default_loss_weight(int top) const override { return top == 0 ? 1.0F : 0.0F; }
  bool allow_force_backward(int bottom) const override { return bottom == 0; }
  bool can_propagate(int bottom) const override { return bottom == 0; }
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> prepare(Tensors bottoms, Tensors tops, bool trains) override;
  bool backward_reads_bottom(int bottom) const override { return bottom == 1; }
  bool backward_reads_top(int top) const override { return top == 1; }
  std::int64_t workspace_bytes() const override { return shares_top_ ? 0 : bytes_of(probability_); }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  double normalizer() const;

  Backend::SoftmaxShape shape_{};
  Tensor probability_;
  bool shares_top_ = false;  // top 1 holds the probabilities
  std::int64_t valid_count_ = 0;  // of the last forward()
};

}  // namespace speedo
