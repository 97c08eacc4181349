#pragma once

#include <speedo/core/layer.hpp>

namespace speedo {

// Makes one axis of the axes `axis` to `end_axis`; shares the bottom's memory.
class FlattenLayer final : public Layer {
 public:
  using Layer::Layer;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  bool backward_reads_bottom(int) const override { return false; }
  bool backward_reads_top(int) const override { return false; }
  Result<void> forward(Tensors, Tensors) override { return {}; }
  void backward(Tensors, const std::vector<bool>&, Tensors) override {}
};

}  // namespace speedo
