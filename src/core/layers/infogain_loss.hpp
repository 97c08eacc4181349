#pragma once

#include <vector>

#include "core/layers/class_loss.hpp"

namespace speedo {

// -sum over classes l of H[label, l] log(max(p_l, 1e-20)), where p is the softmax of bottom 0 along
// `axis`. H, of classes x classes, is bottom 2 or the file `source`. Sums are computed on the host.
class InfogainLossLayer final : public ClassLossLayer {
 public:
  using ClassLossLayer::ClassLossLayer;
  LayerArity arity() const override { return {2, 3, 1, 2}; }
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> prepare(Tensors bottoms, Tensors tops, bool trains) override;
  bool backward_reads_bottom(int) const override { return false; }
  std::int64_t workspace_bytes() const override {
    return ClassLossLayer::workspace_bytes() + bytes_of(logarithm_);
  }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  Result<void> read_matrix();
  Result<void> check_matrix(std::int64_t count) const;
  Result<double> sum_losses();
  // Calls visit(label or -1 where it is ignored, index of class 0) for each label. Error: kData.
  template <class Visit>
  Result<void> for_each_label(const Visit& visit) const;

  Tensor logarithm_;
  std::vector<float> matrix_;           // H by rows; on the host, as all below
  std::vector<float> values_, labels_;  // labels of the last forward()
};

}  // namespace speedo
