#pragma once

#include <speedo/backend/backend.hpp>
#include <speedo/core/layer.hpp>

namespace speedo {

// Local response normalization of an N x C x H x W bottom, in Caffe's two forms (LrnShape). With
// WITHIN_CHANNEL, k is not used.
class LrnLayer final : public Layer {
 public:
  using Layer::Layer;
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  LayoutRule layout_rule() const override { return LayoutRule::kNative; }
  bool takes_bfloat16() const override { return true; }
  Result<void> prepare(Tensors bottoms, Tensors tops, bool trains) override;
  bool keeps_top() const override { return reads_.dst; }
  bool backward_reads_bottom(int) const override { return reads_.src; }
  bool backward_reads_top(int) const override { return reads_.dst; }
  OperationInfo info() const override { return operation_->info(); }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  LrnShape shape_;
  BackwardReads reads_;
  std::unique_ptr<Lrn> operation_;
};

}  // namespace speedo
