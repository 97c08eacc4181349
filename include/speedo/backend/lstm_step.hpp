#pragma once

#include <cstdint>

namespace speedo {

// One time step of long short-term memory (Hochreiter and Schmidhuber 1997) for several streams,
// Caffe's LSTMUnit. Arrays are streams x cells, those of gates streams x (4 cells): of each stream
// the gates i, f and o and the candidate g, one after the other.
//
//   i, f, o = sigmoid(sums), g = tanh(sums), f = cont f (0 where cont is 0, whatever f is)
//   c = f c_before + i g
//   h = o tanh(c)
struct LstmShape {
  std::int64_t streams = 0, cells = 0;
};

struct LstmForward {
  const float* cont = nullptr;  // one of each stream: 0 where a sequence begins, else 1
  const float* c_before = nullptr;
  const float* sums = nullptr;
  float* gates = nullptr;  // i, f, o, g; may equal sums
  float* c = nullptr;
  float* h = nullptr;
};

// As in Caffe the slope of f is f (1 - f), with cont in it.
struct LstmBackward {
  const float* c_before = nullptr;
  const float* gates = nullptr;
  const float* c = nullptr;
  const float* c_grad = nullptr;  // null: 0
  const float* h_grad = nullptr;
  float* c_before_grad = nullptr;  // overwritten; may equal c_grad; null: not asked for
  float* sums_grad = nullptr;      // overwritten; may equal gates; null: not asked for
};

}  // namespace speedo
