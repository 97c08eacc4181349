#include "core/layers/scale.hpp"

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"
#include "core/layers/broadcast.hpp"
#include "core/layers/support.hpp"

namespace speedo {
namespace {

// Without a filler a scale begins as the identity.
const caffe::FillerParameter& unit_filler() {
  static const caffe::FillerParameter filler = [] {
    caffe::FillerParameter unit;
    unit.set_type("constant");
    unit.set_value(1.0F);
    return unit;
  }();
  return filler;
}

}  // namespace

Result<void> ScaleLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  const auto& options = parameter_message().scale_param();
  is_learned_ = bottoms.size() == 1;
  has_bias_ = options.bias_term();
  auto shape = is_learned_ ? factor_shape(bottoms[0]->shape(), options.axis(), options.num_axes())
                           : Result<Shape>(bottoms[1]->shape());
  if (!shape) return error(shape.error().message);
  if (is_learned_) {
    request_parameter(*shape, options.has_filler() ? &options.filler() : &unit_filler());
  }
  if (has_bias_) request_parameter(*shape, &options.bias_filler());
  return {};
}

Result<void> ScaleLayer::reshape(Tensors bottoms, Tensors tops) {
  const Shape& bottom = bottoms[0]->shape();
  const Shape& scale = is_learned_ ? parameter_requests()[0].shape : bottoms[1]->shape();
  auto shape = broadcast_shape(bottom, parameter_message().scale_param().axis(), scale);
  if (!shape) return error(shape.error().message);
  if (!is_learned_ && has_bias_ && scale != parameter_requests()[0].shape) {
    return error("its bias has the shape " + to_string(parameter_requests()[0].shape) +
                 ", its second bottom is now " + to_string(scale));
  }
  shape_ = *shape;
  layout_rule_ =
      is_learned_ ? broadcast_layout_rule(bottom, shape_, has_bias_) : LayoutRule::kPlain;
  is_per_channel_ = is_learned_ && scale.axes() == 1 && bottom.axes() >= 2 &&
                    shape_.batch == bottom[0] && shape_.channels == bottom[1];
  if (tops[0] != bottoms[0]) tops[0]->reshape(bottom);
  return {};
}

Result<void> ScaleLayer::prepare(Tensors bottoms, Tensors tops, bool trains) {
  copy_.plan(trains && tops[0] == bottoms[0] && scale_is_trained(), *bottoms[0]);
  return copy_.is_kept() ? allocate(copy_.tensor()) : Result<void>();
}

bool ScaleLayer::backward_reads_bottom(int bottom) const {
  return bottom == 1 || (scale_is_trained() && !copy_.is_kept());
}

std::int64_t ScaleLayer::workspace_bytes() const { return copy_.bytes(); }

float* ScaleLayer::bias_grad() {
  const bool trained = has_bias_ && parameter_needs_grad(bias_index());
  return trained ? parameter(bias_index()).grad() : nullptr;
}

Result<void> ScaleLayer::forward(Tensors bottoms, Tensors tops) {
  const ChannelView view = channel_view(*bottoms[0], shape_);
  copy_.save(backend(), *bottoms[0]);
  const float* factors = is_learned_ ? scale() : bottoms[1]->data();
  backend().scale_channels(view, {factors, bias(), activation_.op()}, bottoms[0]->data(),
                           tops[0]->data());
  return {};
}

void ScaleLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  const ChannelView view = channel_view(*bottoms[0], shape_);
  const float* bottom = copy_.values(*bottoms[0]);
  float* scale_sum = nullptr;
  if (is_learned_) {
    scale_sum = scale_grad();
  } else if (propagate[1]) {
    scale_sum = bottoms[1]->grad();
    backend().fill(bottoms[1]->count(), 0.0F, scale_sum);
  }
  float* bias_sum = bias_grad();
  if (scale_sum != nullptr || bias_sum != nullptr) {
    backend().sum_channels(view, bottom, tops[0]->grad(), scale_sum, bias_sum);
  }
  if (!propagate[0]) return;
  backend().scale_channels(view, {is_learned_ ? scale() : bottoms[1]->data()}, tops[0]->grad(),
                           bottoms[0]->grad());
}

}  // namespace speedo
