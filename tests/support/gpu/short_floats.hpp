#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace speedo::test {

// A float with so many binary digits after the first, rounded to the nearest: 10 of TF32, 7 of
// bfloat16, 23 of a float.
inline float shortened(float value, int digits) {
  if (digits >= 23 || !std::isfinite(value)) return value;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t half = 1U << (22U - static_cast<unsigned>(digits));
  return std::bit_cast<float>((bits + half) & ~(2U * half - 1U));
}

}  // namespace speedo::test
