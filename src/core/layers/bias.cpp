#include "core/layers/bias.hpp"

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"
#include "core/layers/broadcast.hpp"

namespace speedo {

Result<void> BiasLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  const auto& options = parameter_message().bias_param();
  is_learned_ = bottoms.size() == 1;
  if (!is_learned_) return {};
  auto shape = factor_shape(bottoms[0]->shape(), options.axis(), options.num_axes());
  if (!shape) return error(shape.error().message);
  request_parameter(*shape, &options.filler());
  return {};
}

Result<void> BiasLayer::reshape(Tensors bottoms, Tensors tops) {
  const Shape& bottom = bottoms[0]->shape();
  const Shape& bias = is_learned_ ? parameter_requests()[0].shape : bottoms[1]->shape();
  auto shape = broadcast_shape(bottom, parameter_message().bias_param().axis(), bias);
  if (!shape) return error(shape.error().message);
  shape_ = *shape;
  layout_rule_ = is_learned_ ? broadcast_layout_rule(bottom, shape_, true) : LayoutRule::kPlain;
  if (tops[0] != bottoms[0]) tops[0]->reshape(bottom);
  return {};
}

Result<void> BiasLayer::forward(Tensors bottoms, Tensors tops) {
  const ChannelView view = channel_view(*bottoms[0], shape_);
  const float* bias = is_learned_ ? parameter(0).data() : bottoms[1]->data();
  backend().scale_channels(view, {nullptr, bias, activation_.op()}, bottoms[0]->data(),
                           tops[0]->data());
  return {};
}

void BiasLayer::sum_gradient(const Tensor& top, Tensors bottoms, bool propagate_bias) {
  if (is_learned_ ? !parameter_needs_grad(0) : !propagate_bias) return;
  float* grad = is_learned_ ? parameter(0).grad() : bottoms[1]->grad();
  if (!is_learned_) backend().fill(bottoms[1]->count(), 0.0F, grad);
  const ChannelView view = channel_view(top, shape_);
  backend().sum_channels(view, nullptr, top.grad(), nullptr, grad);
}

void BiasLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  sum_gradient(*tops[0], bottoms, !is_learned_ && propagate[1]);
  if (propagate[0] && tops[0]->grad() != bottoms[0]->grad()) {
    backend().copy(tops[0]->elements(), tops[0]->grad(), bottoms[0]->grad());
  }
}

}  // namespace speedo
