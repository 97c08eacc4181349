#pragma once

#include <speedo/core/layer.hpp>

namespace speedo {

// Share of labels (bottom 1) whose score (bottom 0) is among the top_k best along `axis`. A tie
// with the true class counts against it. The optional top 1 is the accuracy of each class.
class AccuracyLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerArity arity() const override { return {2, 2, 1, 2}; }
  bool allow_force_backward(int /*bottom*/) const override { return false; }
  bool can_propagate(int /*bottom*/) const override { return false; }
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors, const std::vector<bool>&, Tensors) override {}
  bool backward_reads_bottom(int) const override { return false; }
  bool backward_reads_top(int) const override { return false; }

 private:
  bool is_hit(std::int64_t row, std::int64_t column, std::int64_t label) const;

  std::int64_t outer_ = 0, classes_ = 0, inner_ = 0;
  std::vector<float> scores_, labels_, class_hits_, class_counts_;  // on the host
};

}  // namespace speedo
