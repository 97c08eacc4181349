#pragma once

#include <speedo/backend/backend.hpp>
#include <speedo/core/layer.hpp>

namespace speedo {

// coeff times the sum, the sum of absolute values or of squares, or the mean of all that lies
// behind the axes before `axis`, which stay.
class ReductionLayer final : public Layer {
 public:
  using Layer::Layer;
  Result<void> reshape(Tensors bottoms, Tensors tops) override;
  bool backward_reads_bottom(int) const override { return op_ != ReduceOp::kSum; }
  bool backward_reads_top(int) const override { return false; }
  Result<void> forward(Tensors bottoms, Tensors tops) override;
  void backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) override;

 private:
  ReduceOp op_ = ReduceOp::kSum;
  Backend::RowsShape shape_{};
  float coefficient_ = 1.0F;
};

}  // namespace speedo
