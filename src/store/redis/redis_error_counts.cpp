#include "store/redis/redis_error_counts.hpp"

#include <array>
#include <atomic>
#include <cstddef>

#include <speedo/store/redis_errors.hpp>

namespace speedo {
namespace {

struct Kind {
  ErrorCode code;
  std::string_view name;
};

// The last stands for all others.
constexpr std::array kKinds{Kind{ErrorCode::kUnavailable, "unavailable"},
                            Kind{ErrorCode::kTimeout, "timeout"},
                            Kind{ErrorCode::kRefused, "refused"},
                            Kind{ErrorCode::kFull, "full"},
                            Kind{ErrorCode::kCannotWrite, "cannot_write"},
                            Kind{ErrorCode::kCorrupt, "corrupt"},
                            Kind{ErrorCode::kInternal, "other"}};

std::array<std::atomic<std::uint64_t>, kKinds.size()> counts{};

}  // namespace

void count_redis_error(ErrorCode code) {
  std::size_t kind = 0;
  while (kind + 1 < kKinds.size() && kKinds[kind].code != code) ++kind;
  counts[kind].fetch_add(1, std::memory_order_relaxed);
}

std::vector<RedisErrorCount> redis_error_counts() {
  std::vector<RedisErrorCount> all;
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    all.push_back({kKinds[kind].name, counts[kind].load(std::memory_order_relaxed)});
  }
  return all;
}

}  // namespace speedo
