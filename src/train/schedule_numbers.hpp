#pragma once

#include <cstdint>

namespace speedo {

inline constexpr std::uint64_t kWorkersMax = 4096;  // of a job; more is a slip of the keyboard

// Of schedules that are named without their number.
inline constexpr std::uint64_t kUsualMaxAdvance = 2;
inline constexpr std::uint64_t kUsualStaleness = 2;
inline constexpr std::uint64_t kUsualWindow = 1;  // the ring is as long as there are workers

}  // namespace speedo
