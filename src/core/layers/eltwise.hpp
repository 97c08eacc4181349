#pragma once

#include <speedo/core/layer.hpp>

namespace speedo {

// Elementwise product, weighted sum or maximum of its bottoms.
class EltwiseLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {2, -1, 1, 1}; }
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  enum class Operation { kProduct, kSum, kMaximum };

  void product_gradient(const Tensor& top, std::size_t index, Tensors bottoms);

  Operation operation_ = Operation::kSum;
  bool stable_product_ = true;
  std::vector<float> coefficients_;  // one per bottom
  Tensor winner_;                    // kMaximum: index of the bottom that gave each element
};

}  // namespace speedo
