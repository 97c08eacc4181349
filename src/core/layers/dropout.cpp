#include "core/layers/dropout.hpp"

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>

#include "caffe.pb.h"

namespace speedo {

Result<void> DropoutLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  ratio_ = parameter_message().dropout_param().dropout_ratio();
  // Written so that a NaN is refused too.
  if (!(ratio_ >= 0.0F && ratio_ < 1.0F)) {
    return error(fmt::format("dropout_ratio is {}, it must be at least 0 and below 1", ratio_));
  }
  return {};
}

Result<void> DropoutLayer::reshape(Tensors bottoms, Tensors tops) {
  if (tops[0] != bottoms[0]) tops[0]->reshape(bottoms[0]->shape());
  return {};
}

Result<void> DropoutLayer::prepare(Tensors bottoms, Tensors /*tops*/, bool /*trains*/) {
  if (context().phase == Phase::kTest) return {};
  mask_.reshape(bottoms[0]->shape());
  mask_.set_layout(bottoms[0]->layout());
  return allocate(mask_);
}

Result<void> DropoutLayer::forward(Tensors bottoms, Tensors tops) {
  const Elements all = bottoms[0]->elements();
  if (context().phase == Phase::kTest) {
    backend().copy(all, bottoms[0]->data(), tops[0]->data());
    return {};
  }
  SPEEDO_ASSERT(context().random != nullptr);
  backend().dropout_mask({mask_.array_shape(), mask_.layout()}, ratio_, context().random->next(),
                         mask_.data());
  backend().zip({BinaryKind::kProduct}, all, {bottoms[0]->data(), mask_.data(), tops[0]->data()});
  return {};
}

void DropoutLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  if (!propagate[0]) return;
  const Elements all = bottoms[0]->elements();
  if (context().phase == Phase::kTest) {
    backend().copy(all, tops[0]->grad(), bottoms[0]->grad());
    return;
  }
  backend().zip({BinaryKind::kProduct}, all, {tops[0]->grad(), mask_.data(), bottoms[0]->grad()});
}

}  // namespace speedo
