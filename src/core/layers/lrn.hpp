#pragma once

#include <speedo/backend/backend.hpp>
#include <speedo/core/layer.hpp>

namespace speedo {

// Local response normalization of an N x C x H x W bottom, in Caffe's two forms.
//
// ACROSS_CHANNELS: x * (k + alpha/size * sum of x^2 over `size` channels) ^ -beta.
// WITHIN_CHANNEL:  x * (1 + alpha * mean of x^2 over size x size positions) ^ -beta; k is not used,
// and the mean is average pooling's, whose windows count the padding.
class LrnLayer final : public Layer {
 public:
  using Layer::Layer;
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  Result<void> prepare(const Shape& shape);
  void forward_within(const Tensor& bottom, Tensor& top);
  void backward_within(const Tensor& top, Tensor& bottom);

  bool within_ = false;
  std::int64_t size_ = 5;
  float alpha_ = 1.0F, beta_ = 0.75F, k_ = 1.0F;
  Shape prepared_for_;
  std::unique_ptr<Lrn> across_;
  // WITHIN_CHANNEL only: scale_ = 1 + alpha * mean, factor_ = scale_ ^ -beta.
  std::unique_ptr<Pooling> mean_;
  Tensor scale_, factor_, work_, spread_;
};

}  // namespace speedo
