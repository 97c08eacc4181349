#pragma once

#include <speedo/core/layer.hpp>

namespace speedo {

// The bottom `tiles` times over along `axis`.
class TileLayer final : public Layer {
 public:
  using Layer::Layer;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  bool backward_reads_bottom(int) const override { return false; }
  bool backward_reads_top(int) const override { return false; }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  std::int64_t outer_ = 0, inner_ = 0, tiles_ = 1;
};

}  // namespace speedo
