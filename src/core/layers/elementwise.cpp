#include "core/layers/elementwise.hpp"

#include <speedo/backend/backend.hpp>

namespace speedo {

Result<void> ElementwiseLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  SPEEDO_ASSIGN(op_, read_op());
  has_own_top_ = tops[0] != bottoms[0];
  return {};
}

Result<void> ElementwiseLayer::reshape(Tensors bottoms, Tensors tops) {
  if (tops[0] != bottoms[0]) tops[0]->reshape(bottoms[0]->shape());
  return {};
}

Result<void> ElementwiseLayer::prepare(Tensors bottoms, Tensors tops, bool trains) {
  copy_.plan(trains && tops[0] == bottoms[0] && keeps_bottom(), *bottoms[0]);
  return copy_.is_kept() ? allocate(copy_.tensor()) : Result<void>();
}

Result<void> ElementwiseLayer::forward(Tensors bottoms, Tensors tops) {
  copy_.save(backend(), *bottoms[0]);
  backend().map(op_, bottoms[0]->elements(), bottoms[0]->data(), tops[0]->data());
  return {};
}

void ElementwiseLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  if (!propagate[0]) return;
  backend().map_backward(op_, bottoms[0]->elements(), copy_.values(*bottoms[0]),
                         tops[0]->data(), tops[0]->grad(), bottoms[0]->grad());
}

}  // namespace speedo
