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
  const Elements all = bottoms[0]->elements();
  float* sum = bottoms[0]->grad();
  // Tops that are summed again have the sum's own memory for their gradients, maybe several.
  const auto is_sum = [&](const Tensor* top) { return top->grad() == sum; };
  const auto shared = std::count_if(tops.begin(), tops.end(), is_sum);
  if (shared == 0) backend().copy(all, tops[0]->grad(), sum);
  if (shared > 1) backend().map(affine(static_cast<float>(shared)), all, sum, sum);
  for (std::size_t i = shared == 0 ? 1 : 0; i < tops.size(); ++i) {
    if (!is_sum(tops[i])) backend().axpby(all, 1.0F, tops[i]->grad(), 1.0F, sum);
  }
}

}  // namespace speedo
