#pragma once

#include <vector>

#include <speedo/core/layer.hpp>

namespace speedo {

// Row i of the weights (input_dim x num_output), and the bias, for each number i of the bottom: a
// top of one axis more. The same as InnerProduct on one-hot vectors.
class EmbedLayer final : public Layer {
 public:
  using Layer::Layer;
  bool allow_force_backward(int /*bottom*/) const override { return false; }
  bool can_propagate(int /*bottom*/) const override { return false; }
  Result<void> setup(const LayerContext& context, Tensors bottoms, Tensors tops) override;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  bool backward_reads_bottom(int) const override { return false; }
  bool backward_reads_top(int) const override { return false; }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  std::int64_t inputs_ = 0, outputs_ = 0;
  bool has_bias_ = true;
  std::vector<float> numbers_;      // of the bottom, on the host
  std::vector<std::int64_t> rows_;  // of the last forward()
};

}  // namespace speedo
