#include "core/layers/sigmoid.hpp"

#include <speedo/backend/backend.hpp>

namespace speedo {

Result<void> SigmoidLayer::reshape(Tensors bottoms, Tensors tops) {
  if (tops[0] != bottoms[0]) tops[0]->reshape(bottoms[0]->shape());
  return {};
}

Result<void> SigmoidLayer::forward(Tensors bottoms, Tensors tops) {
  backend().sigmoid_forward(bottoms[0]->storage_count(), bottoms[0]->data(), tops[0]->data());
  return {};
}

void SigmoidLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  if (!propagate[0]) return;
  backend().sigmoid_backward(bottoms[0]->storage_count(), tops[0]->data(), tops[0]->grad(),
                             bottoms[0]->grad());
}

}  // namespace speedo
