#pragma once

#include <cstdint>

namespace speedo {

// From the system's source: for names that no other process has, and for seeds.
std::uint64_t random_bits();

// Such a seed: a solver's are not negative.
inline std::int64_t draw_seed() { return static_cast<std::int64_t>(random_bits() & 0x7fffffffU); }

}  // namespace speedo
