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
  const std::int64_t count = bottoms[0]->storage_count();
  float* sum = bottoms[0]->grad();
  const auto shared =
      std::find_if(tops.begin(), tops.end(), [&](const Tensor* top) { return top->grad() == sum; });
  const auto first = shared == tops.end() ? tops.begin() : shared;
  if (shared == tops.end()) backend().copy(count, (*first)->grad(), sum);
  for (auto top = tops.begin(); top != tops.end(); ++top) {
    if (top != first) backend().axpby(count, 1.0F, (*top)->grad(), 1.0F, sum);
  }
}

}  // namespace speedo
