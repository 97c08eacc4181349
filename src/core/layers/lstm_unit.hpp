#pragma once

#include <speedo/backend/lstm_step.hpp>
#include <speedo/core/layer.hpp>

namespace speedo {

// One time step of long short-term memory without its products (lstm_step.hpp has the formulas).
// Bottoms: the cells before, 1 x streams x cells; what the gates are made of, 1 x streams x
// 4 cells; and which streams go on, 1 x streams. Tops: the cells and the hidden values.
class LstmUnitLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {3, 3, 2, 2}; }
  bool allow_force_backward(int bottom) const override { return bottom != 2; }
  bool can_propagate(int bottom) const override { return bottom != 2; }
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> prepare(Tensors bottoms, Tensors tops, bool trains) override;
  bool backward_reads_bottom(int bottom) const override { return bottom == 0; }
  bool backward_reads_top(int top) const override { return top == 0; }
  std::int64_t workspace_bytes() const override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  LstmShape shape_;
  Tensor gates_;
};

}  // namespace speedo
