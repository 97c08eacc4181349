#pragma once

#include <speedo/core/layer.hpp>

namespace speedo {

// Cuts its bottom along one axis, into equal parts or at the slice_points. A single top shares the
// bottom's memory.
class SliceLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {1, 1, 1, -1}; }
  LayoutRule layout_rule() const override;
  bool takes_bfloat16() const override { return true; }
  bool backward_reads_bottom(int) const override { return false; }
  bool backward_reads_top(int) const override { return false; }
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  Result<std::vector<std::int64_t>> part_sizes(std::int64_t size, std::size_t parts) const;

  int axis_ = 1;
};

}  // namespace speedo
