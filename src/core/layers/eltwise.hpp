#pragma once

#include <speedo/backend/binary_op.hpp>
#include <speedo/core/layer.hpp>

#include "core/layers/fused_activation.hpp"
#include "core/layers/support.hpp"

namespace speedo {

// Elementwise product, weighted sum or maximum of its bottoms.
class EltwiseLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {2, -1, 1, 1}; }
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  LayoutRule layout_rule() const override;
  bool takes_bfloat16() const override { return operation_ != Operation::kMaximum; }
  Fused fuse(Layer& next, const FusionTerms& terms) override {
    return activation_.take(next, terms);
  }
  Result<void> prepare(Tensors bottoms, Tensors tops, bool trains) override;
  bool backward_reads_bottom(int) const override { return operation_ == Operation::kProduct; }
  bool backward_reads_top(int) const override {
    return operation_ == Operation::kProduct && !stable_product_;
  }
  bool values_may_share(int, int) const override { return operation_ == Operation::kSum; }
  bool gradients_may_share(int bottom, int top) const override;
  std::int64_t workspace_bytes() const override { return bytes_of(winner_); }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

  // For the layer that does this one's work: whether it is x + y.
  bool is_plain_sum() const {
    return operation_ == Operation::kSum && coefficients_ == std::vector<float>{1.0F, 1.0F};
  }

 private:
  enum class Operation { kProduct, kSum, kMaximum };

  void combine(BinaryOp op, std::size_t bottom, const ZipArrays& arrays);
  void sum(Tensors bottoms, float* top);
  void product(Tensors bottoms, float* top);
  void maximum(Tensors bottoms, float* top);
  void product_gradient(const Tensor& top, std::size_t index, Tensors bottoms);

  Operation operation_ = Operation::kSum;
  bool stable_product_ = true;
  std::vector<float> coefficients_;  // one per bottom
  Elements pass_{0};                 // what it passes over
  FusedActivation activation_;
  Tensor winner_{Shape{0}};          // kMaximum: index of the bottom that gave each element
};

}  // namespace speedo
