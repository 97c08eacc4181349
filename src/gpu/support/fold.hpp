#pragma once

#include "gpu/launch/kernel.hpp"

namespace speedo::gpu {

// Combines what the threads of a block left in shared memory, four values by one thread in a phase.
// The order is the same on every device.

// What is left of so many values after a phase.
SPEEDO_HOST_DEVICE constexpr int folded(int count) { return (count + 3) / 4; }

// How many phases make one value of `count`.
SPEEDO_HOST_DEVICE constexpr int fold_phases(int count) {
  int phases = 0;
  for (; count > 1; count = folded(count)) ++phases;
  return phases;
}

// One phase of count values, `stride` apart, by the thread that is the i-th of as many. After the
// last one the thread 0 has written values[0], and may read it in the same phase.
template <class Value, class Combine>
SPEEDO_HOST_DEVICE void fold(int phase, int count, int i, int stride, Value* values,
                             const Combine& combine) {
  for (; phase > 0; --phase) count = folded(count);
  const int rest = folded(count);
  if (i >= rest) return;
  Value value = values[i * stride];
  for (int j = i + rest; j < count; j += rest) value = combine(value, values[j * stride]);
  values[i * stride] = value;
}

struct Plus {
  template <class Value>
  SPEEDO_HOST_DEVICE Value operator()(Value a, Value b) const {
    return a + b;
  }
};

}  // namespace speedo::gpu
