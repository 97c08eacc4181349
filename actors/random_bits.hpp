#pragma once

#include <cstdint>

namespace speedo {

// From the system's source: names that no other process has, not for computing.
std::uint64_t random_bits();

}  // namespace speedo
