#pragma once

#include <optional>
#include <span>

#include <speedo/train/merge.hpp>

#include "train/chunk_merge.hpp"

namespace speedo {

// parts[0] = sum of scale x part, in order. Returns the first part that makes it not finite.
inline ChunkMerge::Fault sum_parts(ChunkMerge::Parts parts, std::span<const float> scales) {
  if (scales[0] != 1.0F) {
    if (!merge_scale(scales[0], parts[0])) return 0;
  } else if (!all_finite(parts[0])) {
    return 0;
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const bool finite = scales[i] == 1.0F ? merge_accumulate(parts[i], parts[0])
                                          : merge_add(parts[0], parts[i], scales[i], parts[0]);
    if (!finite) return i;
  }
  return std::nullopt;
}

}  // namespace speedo
