#include "core/layers/tanh.hpp"

#include <speedo/backend/backend.hpp>

namespace speedo {

Result<void> TanhLayer::reshape(Tensors bottoms, Tensors tops) {
  if (tops[0] != bottoms[0]) tops[0]->reshape(bottoms[0]->shape());
  return {};
}

Result<void> TanhLayer::forward(Tensors bottoms, Tensors tops) {
  backend().tanh_forward(bottoms[0]->storage_count(), bottoms[0]->data(), tops[0]->data());
  return {};
}

void TanhLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  if (!propagate[0]) return;
  backend().tanh_backward(bottoms[0]->storage_count(), tops[0]->data(), tops[0]->grad(),
                          bottoms[0]->grad());
}

}  // namespace speedo
