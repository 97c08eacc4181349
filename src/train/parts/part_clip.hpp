#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <speedo/core/parameter_arena.hpp>

namespace speedo {

// One part of the weights: chunks C of their record with C mod `parts` == `part`, one behind the
// other. Only the last may be shorter than others, so chunk I of the part is chunk
// part + I * parts of the record.
struct PartClip {
  std::size_t part = 0, parts = 1;
  std::size_t whole_chunk(std::size_t chunk) const { return part + chunk * parts; }
};

// Floats of the part, of a record of so many.
std::uint64_t clipped_count(std::uint64_t element_count, PartClip clip);

// A layout of the pieces of parameters that lie in the part, in its order, with their multipliers.
ParameterLayout clip_layout(const ParameterLayout& whole, PartClip clip);

// The part of an array, and its way back. Requires: sizes that fit each other.
std::vector<float> clip_values(std::span<const float> whole, PartClip clip);
void put_back(std::span<const float> part, PartClip clip, std::span<float> whole);

}  // namespace speedo
