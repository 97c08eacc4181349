#include "core/layers/split.hpp"

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
  const std::int64_t count = bottoms[0]->count();
  backend().copy(count, tops[0]->grad(), bottoms[0]->grad());
  for (const Tensor* top : tops.subspan(1)) {
    backend().axpby(count, 1.0F, top->grad(), 1.0F, bottoms[0]->grad());
  }
}

}  // namespace speedo
