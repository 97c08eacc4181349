#include "core/layers/lrn.hpp"

#include <fmt/format.h>

#include "caffe.pb.h"

namespace speedo {

Result<void> LrnLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  const auto& options = parameter_message().lrn_param();
  within_ = options.norm_region() == caffe::LRNParameter::WITHIN_CHANNEL;
  size_ = options.local_size();
  alpha_ = options.alpha();
  beta_ = options.beta();
  k_ = options.k();
  if (size_ % 2 == 0) {
    return error(fmt::format("local_size is {}, it must be an odd number", size_));
  }
  return {};
}

Result<void> LrnLayer::reshape(Tensors bottoms, Tensors tops) {
  const Shape& bottom = bottoms[0]->shape();
  if (bottom.axes() != 4) {
    return error(fmt::format("needs a bottom of 4 axes (N x C x H x W), it has {}: {}",
                             bottom.axes(), to_string(bottom)));
  }
  tops[0]->reshape(bottom);
  const bool prepared = across_ != nullptr || mean_ != nullptr;
  if (prepared && prepared_for_ == bottom) return {};
  SPEEDO_TRY(prepare(bottom));
  prepared_for_ = bottom;
  return {};
}

Result<void> LrnLayer::prepare(const Shape& shape) {
  if (!within_) {
    const LrnShape across{shape[0], shape[1], shape.count(2), size_, alpha_, beta_, k_};
    SPEEDO_ASSIGN(across_, backend().make_lrn(across));
    return {};
  }
  PoolingShape pooling;
  pooling.method = PoolingShape::Method::kAverage;
  pooling.planes = shape.count(0, 2);
  pooling.src_h = pooling.dst_h = shape[2];
  pooling.src_w = pooling.dst_w = shape[3];
  pooling.kernel_h = pooling.kernel_w = size_;
  pooling.pad_h = pooling.pad_w = (size_ - 1) / 2;
  SPEEDO_ASSIGN(mean_, backend().make_pooling(pooling));
  for (Tensor* tensor : {&scale_, &factor_, &work_, &spread_}) {
    tensor->reshape(shape);
    SPEEDO_TRY(tensor->allocate(backend(), false));
  }
  return {};
}

Result<void> LrnLayer::forward(Tensors bottoms, Tensors tops) {
  if (within_) {
    forward_within(*bottoms[0], *tops[0]);
  } else {
    across_->forward(bottoms[0]->data(), tops[0]->data());
  }
  return {};
}

void LrnLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  if (!propagate[0]) return;
  if (within_) {
    backward_within(*tops[0], *bottoms[0]);
  } else {
    across_->backward(bottoms[0]->data(), tops[0]->data(), tops[0]->grad(), bottoms[0]->grad());
  }
}

void LrnLayer::forward_within(const Tensor& bottom, Tensor& top) {
  const std::int64_t count = bottom.count();
  backend().square(count, bottom.data(), work_.data());
  mean_->forward(work_.data(), scale_.data(), nullptr);
  backend().axpby(count, alpha_, scale_.data(), 0.0F, scale_.data());
  backend().add_scalar(count, 1.0F, scale_.data());
  backend().power(count, scale_.data(), -beta_, factor_.data());
  backend().multiply(count, bottom.data(), factor_.data(), top.data());
}

// With g the top's gradient and P' the transposed mean:
// bottom gradient = g factor - 2 alpha beta x P'(g x factor / scale).
void LrnLayer::backward_within(const Tensor& top, Tensor& bottom) {
  const std::int64_t count = bottom.count();
  float* grad = bottom.grad();
  backend().multiply(count, top.grad(), factor_.data(), grad);
  backend().multiply(count, grad, bottom.data(), work_.data());
  backend().divide(count, work_.data(), scale_.data(), work_.data());
  mean_->backward(work_.data(), spread_.data());
  backend().multiply(count, spread_.data(), bottom.data(), spread_.data());
  backend().axpby(count, -2.0F * alpha_ * beta_, spread_.data(), 1.0F, grad);
}

}  // namespace speedo
