#pragma once

#include <bit>
#include <cstdint>

namespace speedo {

// bfloat16 is the upper half of a float32: its sign, its exponent and 7 binary digits.

// Rounds to the nearest, a draw to the even one; a NaN stays one.
constexpr std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  constexpr std::uint32_t kMagnitude = 0x7fffffffU, kInfinity = 0x7f800000U, kQuiet = 0x40U;
  if ((bits & kMagnitude) > kInfinity) return static_cast<std::uint16_t>(bits >> 16U | kQuiet);
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U);
}

constexpr float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

}  // namespace speedo
