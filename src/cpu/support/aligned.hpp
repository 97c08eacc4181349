#pragma once

#include <cstdint>

#include <speedo/base/round_up.hpp>

namespace speedo::cpu {

// So many elements, rounded up to the next 64-byte boundary.
inline std::int64_t aligned(std::int64_t floats) { return round_up(floats, 16); }

}  // namespace speedo::cpu
