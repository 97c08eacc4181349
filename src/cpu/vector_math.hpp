#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace speedo::cpu {

// exp(x) to about 1 unit in the last place, in operations that a compiler can vectorise. Inputs
// below -87.3 give 0 (the true value is below FLT_MIN), those above 88.7 infinity; NaN stays NaN.
// Method: x = n ln2 + r with |r| <= ln2/2; e^r by its series to r^7; 2^n by the exponent bits.
inline float fast_exp(float x) {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kLn2High = 0.693359375F;  // few bits, so that n * kLn2High is exact
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float clamped = x > -87.3F ? (x < 88.7F ? x : 88.7F) : -87.3F;  // NaN: -87.3
  const float n = (clamped * kLog2E + kRound) - kRound;
  float r = clamped - n * kLn2High;
  r -= n * kLn2Low;
  float p = 1.9841270e-4F;
  p = p * r + 1.3888889e-3F;
  p = p * r + 8.3333333e-3F;
  p = p * r + 4.1666667e-2F;
  p = p * r + 1.6666667e-1F;
  p = p * r + 0.5F;
  p = p * r * r + r + 1.0F;
  // 2^n in two factors: n = 128 alone would not fit the exponent.
  const auto half = static_cast<std::int32_t>(n) / 2;
  const auto rest = static_cast<std::int32_t>(n) - half;
  p *= std::bit_cast<float>((half + 127) << 23);
  p *= std::bit_cast<float>((rest + 127) << 23);
  const float large = x > 88.7F ? HUGE_VALF : p;
  const float bounded = x < -87.3F ? 0.0F : large;
  return x == x ? bounded : x;
}

}  // namespace speedo::cpu
