#pragma once

#include <vector>

#include "core/layers/loss_layer.hpp"

namespace speedo {

// MultinomialLogisticLoss: -1/N times the sum of log(max(p, 1e-20)) of the probabilities p, bottom
// 0, of the labels' classes; N items. Computed on the host.
class MultinomialLossLayer final : public LossLayer {
 public:
  using LossLayer::LossLayer;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  bool backward_reads_bottom(int) const override { return false; }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  std::int64_t items_ = 0, classes_ = 0;
  std::vector<float> values_, labels_;  // on the host
  // Of the last forward(): where each label's probability lies, and that, at least 1e-20.
  std::vector<std::size_t> places_;
  std::vector<float> chosen_;
};

}  // namespace speedo
