#pragma once

#include "core/layers/recurrent.hpp"

namespace speedo {

// Elman's recurrent net: h = tanh(W_xh x + b_h + W_hh h_before), top = tanh(W_ho h + b_o).
// Parameters: Caffe's W_xh, b_h, W_xh_static, W_hh, W_ho and b_o, all of num_output rows.
class RnnLayer final : public RecurrentLayer {
 public:
  using RecurrentLayer::RecurrentLayer;
  bool backward_reads_top(int top) const override { return top == 0; }
  bool keeps_top() const override { return true; }

 protected:
  int sums_per_cell() const override { return 1; }
  int state_count() const override { return 1; }
  Result<void> request_more() override;
  Result<void> shape_unit() override;
  std::vector<Tensor*> unit_memory() override { return {&hidden_, &hidden_grad_, &output_grad_}; }
  double unit_flops() const override;
  float* state(int index, std::int64_t t, Tensors tops) override;
  void step_forward(std::int64_t t, const float* cont, Tensors tops) override;
  void after_forward(Tensors tops) override;
  void before_backward(Tensors tops) override;
  const float* output_gradient(std::int64_t t, Tensors tops) override;
  void step_backward(std::int64_t t, const float* h_grad, Tensors tops) override;

 private:
  Tensor hidden_;                     // after each step
  Tensor hidden_grad_, output_grad_;  // by them, by what the top is the tanh of
};

}  // namespace speedo
