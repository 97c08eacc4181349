#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/thread_pool.hpp"

namespace speedo::cpu {

// The sum of sum_part(first, count) over parts of [0, n) that have `part_min` elements or more: the
// same parts, added in the same order, however many threads there are. `Sum` begins at Sum() and
// has +=.
template <class Sum, class SumPart>
Sum sum_parts(ThreadPool& pool, std::int64_t n, std::int64_t part_min, const SumPart& sum_part) {
  constexpr std::int64_t kParts = 256;
  const std::int64_t length = std::max(part_min, (n + kParts - 1) / kParts);
  const std::int64_t parts = (n + length - 1) / length;
  Sum sums[kParts] = {};
  pool.split(parts, 1, [&](std::int64_t first, std::int64_t last, int) {
    for (std::int64_t i = first; i < last; ++i) {
      sums[i] = sum_part(i * length, std::min(length, n - i * length));
    }
  });
  Sum total{};
  for (std::int64_t i = 0; i < parts; ++i) total += sums[i];
  return total;
}

}  // namespace speedo::cpu
