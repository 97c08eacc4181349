#include "core/layers/relu.hpp"

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"

namespace speedo {

float ReluLayer::slope() const { return parameter_message().relu_param().negative_slope(); }

Result<void> ReluLayer::reshape(Tensors bottoms, Tensors tops) {
  if (tops[0] != bottoms[0]) tops[0]->reshape(bottoms[0]->shape());
  return {};
}

Result<void> ReluLayer::forward(Tensors bottoms, Tensors tops) {
  backend().relu_forward(bottoms[0]->storage_count(), slope(), bottoms[0]->data(), tops[0]->data());
  return {};
}

void ReluLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  if (!propagate[0]) return;
  // Only where it is positive matters, and that the top tells as well unless the slope turns signs.
  const Tensor& signs = slope() < 0.0F ? *bottoms[0] : *tops[0];
  backend().relu_backward(bottoms[0]->storage_count(), slope(), signs.data(), tops[0]->grad(),
                          bottoms[0]->grad());
}

}  // namespace speedo
