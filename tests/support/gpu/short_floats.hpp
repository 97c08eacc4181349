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

// As float16 has it: 10 digits and, below 2^-14, the multiples of 2^-24; beyond 65504 an infinity.
inline float as_half(float value) {
  constexpr float kLeastNormal = 0x1p-14F, kStep = 0x1p-24F, kMost = 65504.0F;
  if (!std::isfinite(value)) return value;
  if (std::fabs(value) < kLeastNormal) return std::nearbyint(value / kStep) * kStep;
  const float rounded = shortened(value, 10);
  return std::fabs(rounded) > kMost ? std::copysign(HUGE_VALF, value) : rounded;
}

// What a library does to operands.
struct Rounding {
  int digits = 23;
  bool is_half = false;

  float operator()(float value) const {
    return is_half ? as_half(value) : shortened(value, digits);
  }
};

}  // namespace speedo::test
