#pragma once

#include <cstdint>
#include <vector>

#include <speedo/core/layer.hpp>

namespace speedo {

// Passes on the items of its bottoms for which the last bottom, the selector, is not 0: a top for
// each of the others, with as many items as there are selected, none if none is.
class FilterLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {2, -1, 1, -1}; }
  bool can_propagate(int bottom) const override { return bottom != selector_; }
  bool allow_force_backward(int bottom) const override { return bottom != selector_; }
  bool shapes_tops_in_forward() const override { return true; }
  bool backward_reads_bottom(int) const override { return false; }
  bool backward_reads_top(int) const override { return false; }
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  // Selected items that lie one after the other.
  struct Run {
    std::int64_t first = 0, count = 0;
  };

  int selector_ = 0;
  std::vector<Run> runs_;  // of the last forward()
};

}  // namespace speedo
