#include "base/random_bits.hpp"

#include <random>

namespace speedo {

std::uint64_t random_bits() {
  std::random_device source;
  return static_cast<std::uint64_t>(source()) << 32U | source();
}

}  // namespace speedo
