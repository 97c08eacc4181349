#pragma once

#include <cstdint>

namespace speedo {

// From the system's source: for names that no other process has, and for seeds.
std::uint64_t random_bits();

}  // namespace speedo
