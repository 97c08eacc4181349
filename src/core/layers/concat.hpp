#pragma once

#include <speedo/core/layer.hpp>

namespace speedo {

// Puts its bottoms one after the other along one axis. A single bottom is passed on, sharing
// memory.
class ConcatLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {1, -1, 1, 1}; }
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  LayoutRule layout_rule() const override;
  bool takes_bfloat16() const override { return true; }
  bool backward_reads_bottom(int) const override { return false; }
  bool backward_reads_top(int) const override { return false; }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  int axis_ = 1;
};

}  // namespace speedo
