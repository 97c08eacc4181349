#include "core/layers/parameter.hpp"

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"
#include "core/layers/support.hpp"

namespace speedo {

Result<void> ParameterLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  const auto shape = shape_from(parameter_message().parameter_param().shape());
  if (!shape) return error("parameter_param: " + shape.error().message);
  if (shape->count() == 0) {
    return error(
        fmt::format("parameter_param gives the shape {}, which is empty", to_string(*shape)));
  }
  request_parameter(*shape, nullptr);
  return {};
}

Result<void> ParameterLayer::reshape(Tensors /*bottoms*/, Tensors tops) {
  tops[0]->reshape(parameter_requests()[0].shape);
  return {};
}

Result<void> ParameterLayer::forward(Tensors /*bottoms*/, Tensors tops) {
  backend().copy(tops[0]->count(), parameter(0).data(), tops[0]->data());
  return {};
}

void ParameterLayer::backward(Tensors tops, const std::vector<bool>& /*propagate*/,
                              Tensors /*bottoms*/) {
  if (!parameter_needs_grad(0)) return;
  backend().axpby(tops[0]->count(), 1.0F, tops[0]->grad(), 1.0F, parameter(0).grad());
}

}  // namespace speedo
