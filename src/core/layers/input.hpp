#pragma once

#include <speedo/core/layer.hpp>

namespace speedo {

// Tops of given shapes whose values the caller puts in before forward().
class InputLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {0, 0, 1, -1}; }
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors, Tensors) override { return {}; }
  Result<void> forward(Tensors, Tensors) override { return {}; }
  void backward(Tensors, const std::vector<bool>&, Tensors) override {}
  bool keeps_tops() const override { return true; }
};

}  // namespace speedo
