#pragma once

#include <speedo/core/layer.hpp>

namespace speedo {

// Reads blobs that nothing else reads, so that they are not listed as outputs of the net.
class SilenceLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {1, -1, 0, 0}; }
  Result<void> reshape(Tensors, Tensors) override { return {}; }
  LayoutRule layout_rule() const override { return LayoutRule::kSame; }
  bool takes_bfloat16() const override { return true; }
  bool backward_reads_bottom(int) const override { return false; }
  Result<void> forward(Tensors, Tensors) override { return {}; }
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;
};

}  // namespace speedo
