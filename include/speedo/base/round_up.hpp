#pragma once

#include <cstdint>

namespace speedo {

// The least multiple of `multiple` that is not below `count`. Requires: count >= 0, multiple > 0.
constexpr std::int64_t round_up(std::int64_t count, std::int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

}  // namespace speedo
