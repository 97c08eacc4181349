#pragma once

#include <speedo/backend/backend.hpp>

#include "core/layers/loss_layer.hpp"

namespace speedo {

// 1/N times the sum over all classes of max(0, 1 - s score), or of its square (L2), where s is 1
// for the class that the label names and -1 for the others; N items.
class HingeLossLayer final : public LossLayer {
 public:
  using LossLayer::LossLayer;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  Backend::HingeShape shape_{};
};

}  // namespace speedo
