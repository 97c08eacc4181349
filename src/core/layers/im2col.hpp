#pragma once

#include <speedo/backend/backend.hpp>
#include <speedo/core/layer.hpp>

namespace speedo {

// The windows that a convolution with the same convolution_param would see: channels times kernel
// positions in place of the channels, output positions in place of the image's.
class Im2colLayer final : public Layer {
 public:
  using Layer::Layer;
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  bool backward_reads_bottom(int) const override { return false; }
  bool backward_reads_top(int) const override { return false; }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  Result<void> compute_output_size(const Shape& bottom);

  int axis_ = 1;  // of the channels
  ConvolutionShape shape_;
};

}  // namespace speedo
