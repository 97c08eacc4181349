#pragma once

#include <speedo/backend/operations.hpp>
#include <speedo/core/layer.hpp>

#include "core/layers/bottom_copy.hpp"

namespace speedo {

class EltwiseLayer;
class ScaleLayer;

// Normalizes each channel to mean 0 and variance 1 (Ioffe and Szegedy 2015): by the batch's
// statistics while training, by those seen so far when testing or with use_global_stats. May work
// in place. Does the work of a learned Scale per channel and of an activation that follow in place,
// where the backend can; or of the Scale, an Eltwise that adds another blob to what that makes, and
// the activation behind the sum. It has that blob as its second bottom then, the sum as its top.
//
// Parameters, no solver's: running sums of mean and variance, and their weight. Each pass that
// trains multiplies all three by moving_average_fraction and adds the batch's mean, its unbiased
// variance and 1.
class BatchNormLayer final : public Layer {
 public:
  using Layer::Layer;
  bool allows_in_place() const override { return true; }
  bool keeps_bottom() const override { return true; }
  LayoutRule layout_rule() const override { return LayoutRule::kSame; }
  bool takes_bfloat16() const override { return true; }
  Fused fuse(Layer& next, const FusionTerms& terms) override;
  bool backward_reads_bottom(int bottom) const override {
    return bottom == 0 && reads_.src && !copy_.is_kept();
  }
  bool backward_reads_top(int) const override { return reads_.dst; }
  bool values_may_share(int bottom, int) const override { return bottom == kAddend; }
  // The gradient of a sum is that of what was added to it, too, and has to stay as it is.
  bool gradients_may_share(int bottom, int) const override {
    return sum_ == nullptr || bottom == kAddend;
  }
  OperationInfo info() const override;
  std::int64_t workspace_bytes() const override;
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> prepare(Tensors bottoms, Tensors tops, bool trains) override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  static constexpr int kAddend = 1;  // the bottom, where there is a sum

  Fused fuse_sum(Layer& next);
  Fused fuse_activation(Layer& next, const FusionTerms& terms);
  const float* gamma() const;
  const float* beta() const;
  void read_running_statistics();
  void add_to_running_statistics(std::int64_t count_per_channel);

  std::int64_t channels_ = 0;
  bool uses_global_ = false;
  bool is_in_place_ = false;     // in the prototxt
  ScaleLayer* scale_ = nullptr;  // whose work is done here
  EltwiseLayer* sum_ = nullptr;  // likewise
  const Layer* activation_ = nullptr;
  std::unique_ptr<BatchNorm> operation_;
  BackwardReads reads_;  // of the operation
  Tensor mean_, variance_;  // of the pass
  BottomCopy copy_;
};

}  // namespace speedo
