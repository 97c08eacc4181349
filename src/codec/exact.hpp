#pragma once

#include <cstddef>
#include <span>

#include <speedo/codec/codec.hpp>

namespace speedo {

// What stands behind a codec's own bytes where values travel as they are, for each range in
// ascending order:
//
//   u32 begin  u32 values k, 1 or more  k floats
//
// or, where all of these are zeros, their number alone (floats are read all the same):
//
//   u32 begin  u32 k + 2^31

// Bytes of `count` values, at most.
std::size_t exact_bytes_max(std::size_t count);

// How many of a chunk's elements from `begin` up to `end` lie in the ranges.
std::size_t exact_within(std::span<const ExactRange> exact, std::size_t begin, std::size_t end);

// Writes that of values[begin, end) of each range; returns how many bytes it wrote.
std::size_t write_exact(std::span<const float> values, std::span<const ExactRange> exact,
                        std::byte* target);

// Puts what all of `bytes` say into its places of `target`, and leaves the others. False if
// write_exact() cannot have written this; `target` is void then.
bool read_exact(std::span<const std::byte> bytes, std::span<float> target);

}  // namespace speedo
