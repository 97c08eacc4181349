#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include <speedo/train/merge.hpp>

#include "train/merge/chunk_merge.hpp"

namespace speedo {

// What several passes go over stays in the first cache.
inline constexpr std::size_t kMergeBlock = 4096;
using MergeBlock = std::array<float, kMergeBlock>;

// Calls visit(offset, count) for one block after the other, until one returns a fault.
template <class Visit>
ChunkMerge::Fault for_each_block(std::size_t count, const Visit& visit) {
  for (std::size_t offset = 0; offset < count; offset += kMergeBlock) {
    const ChunkMerge::Fault fault = visit(offset, std::min(kMergeBlock, count - offset));
    if (fault) return fault;
  }
  return std::nullopt;
}

// sum = sum of scale x part over the elements [offset, offset + sum.size()) of each, in order.
// Returns the first part that makes it not finite.
inline ChunkMerge::Fault sum_parts(ChunkMerge::Parts parts, std::span<const float> scales,
                                   std::size_t offset, std::span<float> sum) {
  const auto of = [&](std::size_t i) { return parts[i].subspan(offset, sum.size()); };
  if (!merge_scaled(scales[0], of(0), sum)) return 0;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const bool finite = scales[i] == 1.0F ? merge_accumulate(of(i), sum)
                                          : merge_add(sum, of(i), scales[i], sum);
    if (!finite) return i;
  }
  return std::nullopt;
}

// The same, and all of it times `factor`. Whether that leaves it finite is not looked at.
inline ChunkMerge::Fault scaled_sum_of_parts(ChunkMerge::Parts parts, std::span<const float> scales,
                                             float factor, std::size_t offset,
                                             std::span<float> sum) {
  if (parts.size() == 2) {
    const ScaledPart a{parts[0].subspan(offset, sum.size()), scales[0]};
    const ScaledPart b{parts[1].subspan(offset, sum.size()), scales[1]};
    // What is not finite anywhere on the way is not at its end; below it is found whose it is.
    if (merge_scaled_two(a, b, factor, sum)) return std::nullopt;
  }
  if (const ChunkMerge::Fault fault = sum_parts(parts, scales, offset, sum)) return fault;
  if (factor != 1.0F) merge_scaled(factor, sum, sum);
  return std::nullopt;
}

}  // namespace speedo
