#include "core/layers/silence.hpp"

#include <speedo/backend/backend.hpp>

namespace speedo {

void SilenceLayer::backward(Tensors /*tops*/, const std::vector<bool>& propagate, Tensors bottoms) {
  for (std::size_t i = 0; i < bottoms.size(); ++i) {
    if (propagate[i]) backend().fill(bottoms[i]->elements(), 0.0F, bottoms[i]->grad());
  }
}

}  // namespace speedo
