#pragma once

#include <speedo/core/layer.hpp>

namespace speedo {

// A top that is learned: the layer's parameter, of the shape that the prototxt gives. It begins as
// zeros.
class ParameterLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {0, 0, 1, 1}; }
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  bool backward_reads_top(int) const override { return false; }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;
};

}  // namespace speedo
