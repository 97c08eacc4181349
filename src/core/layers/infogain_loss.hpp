#pragma once

#include <vector>

#include <speedo/backend/backend.hpp>

#include "core/layers/loss_layer.hpp"
#include "core/layers/support.hpp"

namespace speedo {

// -sum over classes l of H[label, l] log(max(p_l, 1e-20)), where p is the softmax of bottom 0 along
// `axis`, divided by a normalizer as SoftmaxWithLoss'. H, of classes x classes, is bottom 2 or the
// file `source`. The optional top 1 is p. Sums are computed on the host.
class InfogainLossLayer final : public LossLayer {
 public:
  using LossLayer::LossLayer;
  LayerArity arity() const override { return {2, 3, 1, 2}; }
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> prepare(Tensors bottoms, Tensors tops, bool trains) override;
  bool backward_reads_bottom(int) const override { return false; }
  bool backward_reads_top(int top) const override { return top == 1; }
  std::int64_t workspace_bytes() const override {
    return bytes_of(logarithm_) + (shares_top_ ? 0 : bytes_of(probability_));
  }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  Result<void> read_matrix();
  Result<void> check_matrix(std::int64_t count) const;
  Result<double> sum_losses();
  double normalizer() const;
  // Calls visit(label or -1 where it is ignored, index of class 0) for each label. Error: kData.
  template <class Visit>
  Result<void> for_each_label(const Visit& visit) const;

  Backend::SoftmaxShape shape_{};
  Tensor probability_, logarithm_;
  bool shares_top_ = false;             // top 1 holds the probabilities
  std::vector<float> matrix_;           // H by rows; on the host, as all below
  std::vector<float> values_, labels_;  // labels of the last forward()
  std::int64_t valid_count_ = 0;        // of the last forward()
};

}  // namespace speedo
