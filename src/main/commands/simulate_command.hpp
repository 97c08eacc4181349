#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// Whole numbers, both ends included.
struct NumberRange {
  std::uint64_t first = 0, last = 0;
  bool operator==(const NumberRange&) const = default;
};

// "A..B", or "A" alone. Error: kUsage.
Result<NumberRange> parse_seeds(const std::string& text);
// "MIN:MAX", or "N" for N:N; at least 1, at most kSimulatedWorkersMax. Error: kUsage.
Result<NumberRange> parse_worker_range(const std::string& text);
inline constexpr std::uint64_t kSimulatedWorkersMax = 1024;

// "all", or names of schedules with commas between them. Error: kUsage, listing the known ones.
Result<std::vector<std::string>> parse_schedule_names(const std::string& text);

}  // namespace speedo
