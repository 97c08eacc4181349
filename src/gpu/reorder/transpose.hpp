#pragma once

#include <cstdint>

#include "gpu/launch/queue.hpp"
#include "gpu/support/array.hpp"

namespace speedo::gpu {

// Matrices one behind the other, row by row. The target's are the source's transposed, or have them
// added to what lies there.
struct Transposition {
  std::int64_t count, rows, columns;  // of the source
  ArrayFrom source;
  ArrayTo target;
  bool adds;
};

// Whether matrices are small enough for it: places within one are ints.
inline bool can_transpose(std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kIntMax = 2147483647;
  return rows <= kIntMax / columns;
}
// Requires: can_transpose(), and that there are elements.
void transpose(Queue& queue, const Transposition& what);

}  // namespace speedo::gpu
