#pragma once

#include <cstdint>
#include <vector>

#include <speedo/core/layer.hpp>

namespace speedo {

// Item i of the top is that item of the first bottom whose number the second bottom has at i; some
// may be there several times, others not at all.
class BatchReindexLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {2, 2, 1, 1}; }
  bool can_propagate(int bottom) const override { return bottom == 0; }
  bool allow_force_backward(int bottom) const override { return bottom == 0; }
  bool backward_reads_bottom(int) const override { return false; }
  bool backward_reads_top(int) const override { return false; }
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  std::vector<std::int64_t> items_;  // of the last forward()
};

}  // namespace speedo
