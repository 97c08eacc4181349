#pragma once

#include <speedo/backend/layout.hpp>
#include <speedo/core/layer.hpp>

namespace speedo {

// Whether both layouts hold such an array as the same bytes.
bool same_order(const ArrayShape& shape, Layout a, Layout b);

// Gives its bottoms, which share their values, another layout: what a net puts between layers that
// want different ones. Costs nothing, and shares memory, where the bytes are the same.
class ReorderLayer final : public Layer {
 public:
  ReorderLayer(const caffe::LayerParameter& parameter, Layout layout);
  LayerArity arity() const override { return {1, -1, 1, -1, true}; }
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  bool backward_reads_bottom(int) const override { return false; }
  bool backward_reads_top(int) const override { return false; }
  OperationInfo info() const override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  Layout source_, layout_;
  bool is_free_ = false;
};

}  // namespace speedo
