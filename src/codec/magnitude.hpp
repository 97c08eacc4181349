#pragma once

#include <cstdint>
#include <span>

namespace speedo {

// Bits of the largest magnitude (codec/bits.hpp), 0 of none: infinity's or more if a value is not
// finite.
std::int32_t largest_magnitude(std::span<const float> values);

// The same of values[i] + others[i]. Requires: equal sizes.
std::int32_t largest_sum_magnitude(std::span<const float> values, std::span<const float> others);

}  // namespace speedo
