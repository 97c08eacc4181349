#include "core/layers/softmax.hpp"

#include "caffe.pb.h"

namespace speedo {

Result<void> SoftmaxLayer::reshape(Tensors bottoms, Tensors tops) {
  const Shape& bottom = bottoms[0]->shape();
  auto axis = bottom.canonical_axis(parameter_message().softmax_param().axis());
  if (!axis) return error(axis.error().message);
  shape_ = {bottom.count(0, *axis), bottom[*axis], bottom.count(*axis + 1)};
  if (tops[0] != bottoms[0]) tops[0]->reshape(bottom);
  return {};
}

Result<void> SoftmaxLayer::forward(Tensors bottoms, Tensors tops) {
  backend().softmax_forward(shape_, bottoms[0]->data(), tops[0]->data());
  return {};
}

void SoftmaxLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  if (!propagate[0]) return;
  backend().softmax_backward(shape_, tops[0]->data(), tops[0]->grad(), bottoms[0]->grad());
}

}  // namespace speedo
