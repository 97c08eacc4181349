#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace speedo {

// An array of `size` units that holds something from step `first` to step `last`, both included.
struct Lifetime {
  std::int64_t size = 0;
  int first = 0, last = 0;
};

struct Packing {
  std::vector<std::int64_t> offsets;  // one per lifetime, in units
  std::int64_t size = 0;              // of all, in units
};

// Puts arrays where those alive at the same step do not overlap, in as little memory as a greedy
// search finds. The same lifetimes get the same places. Requires: sizes above 0, first <= last.
Packing pack(std::span<const Lifetime> lifetimes);

// The most that is alive at one step: no packing is smaller.
std::int64_t most_alive(std::span<const Lifetime> lifetimes);

}  // namespace speedo
