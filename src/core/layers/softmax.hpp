#pragma once

#include <speedo/backend/backend.hpp>
#include <speedo/core/layer.hpp>

namespace speedo {

// Softmax along one axis. May work in place.
class SoftmaxLayer final : public Layer {
 public:
  using Layer::Layer;
  bool allows_in_place() const override { return true; }
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  bool backward_reads_bottom(int) const override { return false; }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  Backend::SoftmaxShape shape_{};
};

}  // namespace speedo
