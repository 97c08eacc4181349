#pragma once

#include <speedo/core/layer.hpp>

namespace speedo {

// top = max(bottom, 0) + negative_slope * min(bottom, 0). May work in place.
class ReluLayer final : public Layer {
 public:
  using Layer::Layer;
  bool allows_in_place() const override { return true; }
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  float slope() const;
};

}  // namespace speedo
