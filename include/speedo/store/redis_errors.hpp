#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace speedo {

// How often attempts of this process to use Redis failed, those that were repeated with success as
// well, by kind: "unavailable", "timeout", ... Every kind is there. Thread safety: any thread.
struct RedisErrorCount {
  std::string_view kind;
  std::uint64_t count = 0;
};
std::vector<RedisErrorCount> redis_error_counts();

}  // namespace speedo
