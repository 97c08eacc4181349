#pragma once

#include <speedo/core/layer.hpp>

#include "core/layers/bottom_copy.hpp"

namespace speedo {

// top = max(bottom, 0) + slope min(bottom, 0), the slope learned for each channel, or one for all
// (He et al. 2015). May work in place.
class PreluLayer final : public Layer {
 public:
  using Layer::Layer;
  bool allows_in_place() const override { return true; }
  bool keeps_bottom() const override { return true; }
  LayoutRule layout_rule() const override { return LayoutRule::kSame; }
  bool backward_reads_bottom(int) const override { return !copy_.is_kept(); }
  bool backward_reads_top(int) const override { return false; }
  bool gradients_may_share(int, int) const override { return true; }
  std::int64_t workspace_bytes() const override;
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> prepare(Tensors bottoms, Tensors tops, bool trains) override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  bool channel_shared_ = false;
  ChannelView view_;  // as the slopes see it
  BottomCopy copy_;
};

}  // namespace speedo
