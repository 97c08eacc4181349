#pragma once

#include <cstddef>
#include <span>

#include "codec/index_set.hpp"

namespace speedo {

// Marks the `wanted` values of largest magnitude, all finite: of equal ones the first, and none
// that is 0. Requires: `entries` is of values.size(); wanted > 0.
void mark_largest(std::span<const float> values, std::size_t wanted, IndexSet& entries);

}  // namespace speedo
