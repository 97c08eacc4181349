#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace speedo {

// How labels are read, which are floats in every net: Caffe cuts them to whole numbers.

// The class that a label names; -1 if it is none of `classes`, also for a NaN.
constexpr std::int64_t label_index(float label, std::int64_t classes) {
  if (!(label > -1.0F && label < static_cast<float>(classes))) return -1;
  // A float may be rounded up to a count that has more digits than it.
  return std::min(static_cast<std::int64_t>(label), classes - 1);
}

inline bool is_ignored(float label, std::optional<int> ignored) {
  return ignored && std::trunc(label) == static_cast<float>(*ignored);
}

}  // namespace speedo
