#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include <speedo/base/clock.hpp>

// Words that notes and reports share.
namespace speedo {

// "1 worker", "3 workers".
inline std::string count_workers(std::uint64_t count) {
  return fmt::format("{} worker{}", count, count == 1 ? "" : "s");
}

inline std::int64_t whole_seconds(Instant time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

inline std::uint64_t whole_milliseconds(Instant time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
}

}  // namespace speedo
