#pragma once

#include <speedo/backend/backend.hpp>
#include <speedo/core/layer.hpp>

#include "core/layers/fused_activation.hpp"

namespace speedo {

// Cross-correlation over any number of spatial axes, those after `axis`, with stride, padding,
// dilation and groups. The same weights are applied to each bottom, and each makes one top.
// Weights: outputs x channels/groups x kernel...; bias: outputs.
// Of the type Deconvolution it makes of each element of its bottom a kernel in its top, as a
// convolution's gradient does. Weights: channels x outputs/groups x kernel... .
class ConvolutionLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {1, -1, 1, -1, true}; }
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  LayoutRule layout_rule() const override;
  bool takes_bfloat16() const override { return true; }
  bool takes_plain_bottom(LayoutKind native) const override;
  const ConvolutionShape* convolution_shape() const override;
  Fused fuse(Layer& next, const FusionTerms& terms) override;
  Result<void> prepare(Tensors bottoms, Tensors tops, bool trains) override;
  bool backward_reads_bottom(int) const override { return parameter_needs_grad(0); }
  bool backward_reads_top(int) const override { return false; }
  OperationInfo info() const override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  // Error: without the layer's name.
  Result<std::int64_t> output_size(std::size_t axis, std::int64_t size) const;
  Result<void> compute_output_size(const Shape& bottom);

  int axis_ = 1;
  bool has_bias_ = true;
  ConvolutionShape shape_;
  FusedActivation activation_;
  int bottom_count_ = 1;
  std::unique_ptr<Convolution> operation_;
};

}  // namespace speedo
