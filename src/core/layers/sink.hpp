#pragma once

#include <memory>

#include <speedo/core/layer.hpp>

namespace speedo {

// HDF5Output: its bottoms, data and labels, go to a sink with each forward pass. What the sink
// makes of them is not this layer's business.
class SinkLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {2, 2, 0, 0}; }
  bool can_propagate(int) const override { return false; }
  bool allow_force_backward(int) const override { return false; }
  bool backward_reads_bottom(int) const override { return false; }
  bool writes_outside() const override { return true; }
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors, const std::vector<bool>&, Tensors) override {}
  Result<void> finish() override;

 private:
  std::unique_ptr<BatchSink> sink_;  // null: nothing more is written
};

}  // namespace speedo
