#pragma once

#include <cstdint>
#include <vector>

namespace speedo {

// Arrays of several axes, in row-major order.

inline std::int64_t product(const std::vector<std::int64_t>& sizes) {
  std::int64_t result = 1;
  for (const std::int64_t size : sizes) result *= size;
  return result;
}

// The position of an index.
inline std::vector<std::int64_t> position(std::int64_t index,
                                          const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> result(sizes.size());
  for (std::size_t i = sizes.size(); i-- > 0;) {
    result[i] = index % sizes[i];
    index /= sizes[i];
  }
  return result;
}

}  // namespace speedo
