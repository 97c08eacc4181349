#pragma once

#include <cstdint>
#include <string>

#include <speedo/base/result.hpp>

namespace speedo {

// How many workers a job has: "N" starts with N and goes on with any number; "MIN:MAX" starts with
// MIN, pauses below it, and takes no more than MAX.
struct WorkerRange {
  std::uint64_t start = 1, min = 1;
  std::uint64_t max = 0;  // 0: no limit
  std::uint64_t expected() const { return max == 0 ? start : max; }
};
// Error: kUsage.
Result<WorkerRange> parse_workers(const std::string& text);

}  // namespace speedo
