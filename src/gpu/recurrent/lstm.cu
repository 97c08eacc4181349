#include "gpu/recurrent/lstm.hpp"

#include <cmath>

#include "gpu/elementwise/unary_math.hpp"
#include "gpu/launch/launch.hpp"
#include "gpu/support/divisor.hpp"

namespace speedo::gpu {
namespace {

// A thread has a cell of a stream at a time, with its four gates.
struct LstmForwardKernel {
  static constexpr const char* kName = "lstm_forward";
  std::int64_t n;
  Divisor cells;
  LstmForward step;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    const std::int64_t width = cells.value();
    for (std::int64_t cell = lane.first(); cell < n; cell += lane.stride()) {
      const std::int64_t stream = cells.quotient(cell);
      const std::int64_t gate = cell + 3 * stream * width;
      const float cont = step.cont[stream];
      const float i = sigmoid(step.sums[gate]);
      const float f = cont == 0.0F ? 0.0F : cont * sigmoid(step.sums[gate + width]);
      const float o = sigmoid(step.sums[gate + 2 * width]);
      const float g = std::tanh(step.sums[gate + 3 * width]);
      const float c = f * step.c_before[cell] + i * g;
      step.gates[gate] = i;
      step.gates[gate + width] = f;
      step.gates[gate + 2 * width] = o;
      step.gates[gate + 3 * width] = g;
      step.c[cell] = c;
      step.h[cell] = o * std::tanh(c);
    }
  }
};

struct LstmBackwardKernel {
  static constexpr const char* kName = "lstm_backward";
  std::int64_t n;
  Divisor cells;
  LstmBackward step;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    const std::int64_t width = cells.value();
    for (std::int64_t cell = lane.first(); cell < n; cell += lane.stride()) {
      const std::int64_t gate = cell + 3 * cells.quotient(cell) * width;
      const float i = step.gates[gate], f = step.gates[gate + width];
      const float o = step.gates[gate + 2 * width], g = step.gates[gate + 3 * width];
      const float tanh_c = std::tanh(step.c[cell]), h_grad = step.h_grad[cell];
      const float later = step.c_grad == nullptr ? 0.0F : step.c_grad[cell];
      const float c_grad = later + h_grad * o * (1.0F - tanh_c * tanh_c);
      const float c_before = step.c_before[cell];
      if (step.c_before_grad != nullptr) step.c_before_grad[cell] = c_grad * f;
      if (step.sums_grad == nullptr) continue;
      step.sums_grad[gate] = c_grad * g * (i * (1.0F - i));
      step.sums_grad[gate + width] = c_grad * c_before * (f * (1.0F - f));
      step.sums_grad[gate + 2 * width] = h_grad * tanh_c * (o * (1.0F - o));
      step.sums_grad[gate + 3 * width] = c_grad * i * (1.0F - g * g);
    }
  }
};

}  // namespace

void lstm_forward(Queue& queue, const LstmShape& shape, const LstmForward& step) {
  const std::int64_t n = shape.streams * shape.cells;
  if (n == 0) return;
  launch(queue, grid_for(queue, n), LstmForwardKernel{n, Divisor(shape.cells), step});
}

void lstm_backward(Queue& queue, const LstmShape& shape, const LstmBackward& step) {
  const std::int64_t n = shape.streams * shape.cells;
  if (n == 0) return;
  launch(queue, grid_for(queue, n), LstmBackwardKernel{n, Divisor(shape.cells), step});
}

}  // namespace speedo::gpu
