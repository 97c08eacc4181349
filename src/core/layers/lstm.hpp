#pragma once

#include "core/layers/recurrent.hpp"

namespace speedo {

// Long short-term memory; lstm_step.hpp has the unit's formulas. Parameters: Caffe's W_xc, b_c,
// W_xc_static and W_hc, each of 4 x num_output rows in the gates' order. States: hidden values,
// which are the top, and cells.
class LstmLayer final : public RecurrentLayer {
 public:
  using RecurrentLayer::RecurrentLayer;
  bool backward_reads_top(int) const override { return false; }

 protected:
  int sums_per_cell() const override { return 4; }
  int state_count() const override { return 2; }
  Result<void> shape_unit() override;
  std::vector<Tensor*> unit_memory() override { return {&kept_cells_, &cells_grad_}; }
  float* state(int index, std::int64_t t, Tensors tops) override;
  void step_forward(std::int64_t t, const float* cont, Tensors tops) override;
  const float* output_gradient(std::int64_t t, Tensors tops) override;
  void step_backward(std::int64_t t, const float* h_grad, Tensors tops) override;

 private:
  Tensor kept_cells_;  // before the first step and after each
  Tensor cells_grad_;  // of one step
};

}  // namespace speedo
