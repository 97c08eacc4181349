#include "support/reference/reference_lstm.hpp"

#include <cmath>

namespace speedo {
namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// Calls visit(stream, first of its gates' elements of a cell, the cell's element).
template <class Visit>
void for_each_cell(const LstmShape& shape, const Visit& visit) {
  for (std::int64_t n = 0; n < shape.streams; ++n) {
    for (std::int64_t k = 0; k < shape.cells; ++k) {
      visit(n, 4 * n * shape.cells + k, n * shape.cells + k);
    }
  }
}

}  // namespace

void reference_lstm_forward(const LstmShape& shape, const LstmForward& step) {
  const std::int64_t cells = shape.cells;
  for_each_cell(shape, [&](std::int64_t n, std::int64_t gate, std::int64_t cell) {
    const double cont = step.cont[n];
    const double i = sigmoid(step.sums[gate]);
    const double f = cont == 0.0 ? 0.0 : cont * sigmoid(step.sums[gate + cells]);
    const double o = sigmoid(step.sums[gate + 2 * cells]);
    const double g = std::tanh(step.sums[gate + 3 * cells]);
    const double c = f * step.c_before[cell] + i * g;
    step.gates[gate] = static_cast<float>(i);
    step.gates[gate + cells] = static_cast<float>(f);
    step.gates[gate + 2 * cells] = static_cast<float>(o);
    step.gates[gate + 3 * cells] = static_cast<float>(g);
    step.c[cell] = static_cast<float>(c);
    step.h[cell] = static_cast<float>(o * std::tanh(c));
  });
}

void reference_lstm_backward(const LstmShape& shape, const LstmBackward& step) {
  const std::int64_t cells = shape.cells;
  for_each_cell(shape, [&](std::int64_t, std::int64_t gate, std::int64_t cell) {
    const double i = step.gates[gate], f = step.gates[gate + cells];
    const double o = step.gates[gate + 2 * cells], g = step.gates[gate + 3 * cells];
    const double tanh_c = std::tanh(double{step.c[cell]});
    const double h_grad = step.h_grad[cell];
    const double later = step.c_grad == nullptr ? 0.0 : double{step.c_grad[cell]};
    const double c_grad = later + h_grad * o * (1.0 - tanh_c * tanh_c);
    if (step.c_before_grad != nullptr) step.c_before_grad[cell] = static_cast<float>(c_grad * f);
    if (step.sums_grad == nullptr) return;
    step.sums_grad[gate] = static_cast<float>(c_grad * g * i * (1.0 - i));
    step.sums_grad[gate + cells] =
        static_cast<float>(c_grad * step.c_before[cell] * f * (1.0 - f));
    step.sums_grad[gate + 2 * cells] = static_cast<float>(h_grad * tanh_c * o * (1.0 - o));
    step.sums_grad[gate + 3 * cells] = static_cast<float>(c_grad * i * (1.0 - g * g));
  });
}

}  // namespace speedo
