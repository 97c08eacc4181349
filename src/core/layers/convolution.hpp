#pragma once

#include <speedo/backend/backend.hpp>
#include <speedo/core/layer.hpp>

namespace speedo {

// Cross-correlation over any number of spatial axes, those after `axis`, with stride, padding,
// dilation and groups. The same weights are applied to each bottom, and each makes one top.
// Weights: outputs x channels/groups x kernel...; bias: outputs.
class ConvolutionLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {1, -1, 1, -1, true}; }
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  Result<void> compute_output_size(const Shape& bottom);

  int axis_ = 1;
  bool has_bias_ = true;
  ConvolutionShape shape_;
  Shape prepared_for_;  // the bottom shape of operation_
  std::unique_ptr<Convolution> operation_;
};

}  // namespace speedo
