#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace speedo {

// Names one training for good: drawn at random when it begins from its start, and from then on part
// of its session's state, so in every version of the weights in the store and in every checkpoint
// file. Whoever resumes goes on under the same name.
struct TrainingId {
  std::uint64_t high = 0, low = 0;  // both 0: unknown
  auto operator<=>(const TrainingId&) const = default;
  bool is_known() const { return high != 0 || low != 0; }
};

// The first 16 of its 32 hexadecimal digits, enough to tell trainings apart in a log; "unknown".
std::string short_name(const TrainingId& id);

}  // namespace speedo
