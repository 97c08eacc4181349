#pragma once

#include <speedo/backend/backend.hpp>
#include <speedo/core/layer.hpp>

#include "core/layers/support.hpp"

namespace speedo {

// Takes the mean away from each channel of each item, or from each item (across_channels), and
// divides by the standard deviation plus eps (normalize_variance). The top has Caffe's four axes.
// May work in place.
class MvnLayer final : public Layer {
 public:
  using Layer::Layer;
  bool allows_in_place() const override { return true; }
  // Not for its own backward pass: with a top of its own it spares the blob that the layer before
  // may need as it made it, and values_may_share() gives the memory back where nobody does.
  bool keeps_bottom() const override { return norm_.epsilon.has_value(); }
  bool keeps_top() const override { return norm_.epsilon.has_value(); }
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> prepare(Tensors bottoms, Tensors tops, bool trains) override;
  bool backward_reads_bottom(int) const override { return false; }
  bool backward_reads_top(int) const override { return norm_.epsilon.has_value(); }
  bool values_may_share(int, int) const override { return true; }
  bool gradients_may_share(int, int) const override { return true; }
  std::int64_t workspace_bytes() const override { return bytes_of(deviation_); }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  Backend::RowNorm norm_{};
  Tensor deviation_{Shape{0}};  // of each row
};

}  // namespace speedo
