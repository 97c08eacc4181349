#pragma once

#include <speedo/core/layer.hpp>

namespace speedo {

// Lets several layers read one blob: the tops share the bottom's data, and their gradients add up.
class SplitLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {1, 1, 1, -1}; }
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> forward(Tensors, Tensors) override { return {}; }
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;
};

}  // namespace speedo
