#pragma once

#include <cstdint>

#include "gpu/launch/queue.hpp"
#include "gpu/support/array.hpp"

namespace speedo::gpu {

// Copies n elements in their order from an array of one type to one of another, or adds them to
// what lies there. Requires: n > 0.
void convert(Queue& queue, std::int64_t n, ArrayFrom source, ArrayTo target, bool adds);

}  // namespace speedo::gpu
