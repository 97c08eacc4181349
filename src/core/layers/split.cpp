#include "core/layers/split.hpp"

#include <algorithm>

#include <speedo/backend/backend.hpp>

namespace speedo {

Result<void> SplitLayer::reshape(Tensors bottoms, Tensors tops) {
  for (Tensor* top : tops) {
    top->reshape(bottoms[0]->shape());
    top->share_data(*bottoms[0]);
  }
  return {};
}

void SplitLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  if (!propagate[0]) return;
  float* sum = bottoms[0]->grad();
  // Tops that are summed again have the sum's own memory for their gradients, maybe several.
  const auto is_sum = [&](const Tensor* top) { return top->grad() == sum; };
  gradients_.assign(static_cast<std::size_t>(std::count_if(tops.begin(), tops.end(), is_sum)), sum);
  for (const Tensor* top : tops) {
    if (!is_sum(top)) gradients_.push_back(top->grad());
  }
  backend().sum_gradients(slope_, bottoms[0]->elements(), gradients_, bottoms[0]->data(), sum);
}

}  // namespace speedo
