#include "core/layers/prelu.hpp"

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"
#include "core/layers/support.hpp"

namespace speedo {
namespace {

const caffe::FillerParameter& default_filler() {
  static const caffe::FillerParameter filler = [] {
    caffe::FillerParameter quarter;
    quarter.set_type("constant");
    quarter.set_value(0.25F);
    return quarter;
  }();
  return filler;
}

}  // namespace

Result<void> PreluLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  const auto& options = parameter_message().prelu_param();
  const Shape& bottom = bottoms[0]->shape();
  if (bottom.axes() < 2) {
    return error(fmt::format("needs a bottom of 2 axes or more (N x C ...), it has {}: {}",
                             bottom.axes(), to_string(bottom)));
  }
  channel_shared_ = options.channel_shared();
  request_parameter(channel_shared_ ? Shape() : Shape{bottom[1]},
                    options.has_filler() ? &options.filler() : &default_filler());
  return {};
}

Result<void> PreluLayer::reshape(Tensors bottoms, Tensors tops) {
  const Shape& bottom = bottoms[0]->shape();
  const std::int64_t slopes = parameter_requests()[0].shape.count();
  if (bottom.axes() < 2 || (!channel_shared_ && bottom[1] != slopes)) {
    return error(
        fmt::format("has slopes for {} channels, its bottom is now {}", slopes, to_string(bottom)));
  }
  if (tops[0] != bottoms[0]) tops[0]->reshape(bottom);
  return {};
}

Result<void> PreluLayer::prepare(Tensors bottoms, Tensors tops, bool trains) {
  const std::int64_t count = bottoms[0]->storage_count();
  view_ = channel_shared_ ? ChannelView{{1, 1, count}, {}}
                          : ChannelView{bottoms[0]->array_shape(), bottoms[0]->layout()};
  copy_.plan(trains && tops[0] == bottoms[0], *bottoms[0]);
  return copy_.is_kept() ? allocate(copy_.tensor()) : Result<void>();
}

std::int64_t PreluLayer::workspace_bytes() const { return copy_.bytes(); }

Result<void> PreluLayer::forward(Tensors bottoms, Tensors tops) {
  copy_.save(backend(), *bottoms[0]);
  backend().prelu_forward(view_, parameter(0).data(), bottoms[0]->data(), tops[0]->data());
  return {};
}

void PreluLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  float* slope_grad = parameter_needs_grad(0) ? parameter(0).grad() : nullptr;
  float* bottom_grad = propagate[0] ? bottoms[0]->grad() : nullptr;
  if (slope_grad == nullptr && bottom_grad == nullptr) return;
  backend().prelu_backward(view_, parameter(0).data(), copy_.values(*bottoms[0]), tops[0]->grad(),
                           bottom_grad, slope_grad);
}

}  // namespace speedo
