#pragma once

#include <cstddef>
#include <cstdint>

namespace speedo {

// A parameter whose gradient of one pass is a product of two smaller arrays ("sufficient factors",
// Xie et al. 2015), which can travel instead of it: G = L^T R with L of rows x height floats and R
// of rows x width, all row by row. An inner product's are its top's gradient and its bottom.
struct FactorShape {
  std::size_t slot = 0;  // of the layout
  std::int64_t rows = 0, height = 0, width = 0;

  std::int64_t factor_count() const { return rows * (height + width); }
  bool operator==(const FactorShape&) const = default;
};

}  // namespace speedo
