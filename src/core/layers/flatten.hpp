#pragma once

#include <speedo/core/layer.hpp>

namespace speedo {

// Makes one axis of the axes `axis` to `end_axis`; shares the bottom's memory.
class FlattenLayer final : public Layer {
 public:
  using Layer::Layer;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> forward(Tensors, Tensors) override { return {}; }
  void backward(Tensors, const std::vector<bool>&, Tensors) override {}
};

}  // namespace speedo
