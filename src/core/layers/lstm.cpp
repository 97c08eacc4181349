#include "core/layers/lstm.hpp"

#include <speedo/backend/backend.hpp>

namespace speedo {

Result<void> LstmLayer::shape_unit() {
  SPEEDO_TRY(shape_memory(kept_cells_, {steps() + 1, streams(), cells()}));
  return shape_memory(cells_grad_, {streams(), cells()});
}

float* LstmLayer::state(int index, std::int64_t t, Tensors tops) {
  if (index == 0) return tops[0]->data() + t * step_count();
  return kept_cells_.data() + (t + 1) * step_count();
}

void LstmLayer::step_forward(std::int64_t t, const float* cont, Tensors tops) {
  backend().lstm_forward({streams(), cells()}, {cont, state(1, t - 1, tops), sums(t), sums(t),
                                                state(1, t, tops), state(0, t, tops)});
}

const float* LstmLayer::output_gradient(std::int64_t t, Tensors tops) {
  return tops[0]->grad() + t * step_count();
}

void LstmLayer::step_backward(std::int64_t t, const float* h_grad, Tensors tops) {
  const float* later = t + 1 < steps() ? cells_grad_.data() : nullptr;
  backend().lstm_backward({streams(), cells()},
                          {state(1, t - 1, tops), sums(t), state(1, t, tops), later, h_grad,
                           cells_grad_.data(), sums(t)});
}

}  // namespace speedo
