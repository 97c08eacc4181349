#include <speedo/base/bfloat16.hpp>

#include "base/simd.hpp"
#include "codec/bits.hpp"
#include "codec/dense.hpp"

// Floats of 16 bits, one after another, little-endian.

namespace speedo {
namespace half_kernels {

// The upper half of the float, rounded: 0x7fff more carries into it, one more if it is odd. Unlike
// to_bfloat16(), a magnitude that would be rounded to infinity is the largest that is not.
inline std::uint16_t to_bf16(float value) {
  constexpr std::int32_t kMost = 0x7f7f7fff;
  const auto bits = std::bit_cast<std::int32_t>(value);
  const std::int32_t magnitude = bits & kMagnitudeMask;
  const std::int32_t most = magnitude < kMost ? magnitude : kMost;
  const std::int32_t rounded = (most + 0x7fff + ((most >> 16) & 1)) >> 16;
  return static_cast<std::uint16_t>(rounded | ((bits >> 16) & 0x8000));
}

// binary16 has 5 bits of exponent (bias 15 where float has 127) and 10 of mantissa. From 2^-14 on,
// the exponent is moved and 13 bits are rounded off. Below, 0.5 is added: the sum's last bit is
// worth 2^-24, as is the half's, so the addition rounds.
inline std::uint16_t to_fp16(float value) {
  constexpr std::int32_t kMost = 0x477fe000;    // 65504
  constexpr std::int32_t kNormal = 0x38800000;  // 2^-14
  constexpr std::int32_t kBias = (127 - 15) << 23;
  const auto bits = std::bit_cast<std::int32_t>(value);
  const std::int32_t magnitude = bits & kMagnitudeMask;
  const std::int32_t most = magnitude < kMost ? magnitude : kMost;
  const std::int32_t normal = (most - kBias + 0xfff + ((most >> 13) & 1)) >> 13;
  const std::int32_t small = std::bit_cast<std::int32_t>(std::bit_cast<float>(most) + 0.5F) -
                             std::bit_cast<std::int32_t>(0.5F);
  const std::int32_t half = most < kNormal ? small : normal;
  return static_cast<std::uint16_t>(half | ((bits >> 16) & 0x8000));
}

// The way back; below 2^-14 the mantissa is put behind 2^-14, which is then taken off.
inline float from_fp16(std::uint16_t half) {
  constexpr std::int32_t kBias = (127 - 15) << 23;
  constexpr std::int32_t kNormal = 0x38800000;  // 2^-14
  const std::int32_t magnitude = half & 0x7fff;
  const std::int32_t moved = magnitude << 13;
  const float normal = std::bit_cast<float>(moved + kBias);
  const float small = std::bit_cast<float>(moved + kNormal) - std::bit_cast<float>(kNormal);
  const float positive = magnitude < 0x400 ? small : normal;
  return std::bit_cast<float>(std::bit_cast<std::int32_t>(positive) |
                              static_cast<std::int32_t>((half & 0x8000U) << 16U));
}

// The pragmas: arrays are apart, so no iteration reads what another one writes.
SPEEDO_MULTIVERSION void pack_bf16(std::size_t n, const float* x, std::byte* target) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) store(target + 2 * i, to_bf16(x[i]));
}

SPEEDO_MULTIVERSION void pack_bf16_residual(std::size_t n, const float* x, float* residual,
                                            std::byte* target) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    const float input = x[i] + residual[i];
    const std::uint16_t half = to_bf16(input);
    store(target + 2 * i, half);
    residual[i] = input - from_bfloat16(half);
  }
}

SPEEDO_MULTIVERSION std::uint32_t unpack_bf16(std::size_t n, const std::byte* source, float* x) {
  std::uint32_t bad = 0;
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    const auto half = load<std::uint16_t>(source + 2 * i);
    x[i] = from_bfloat16(half);
    bad |= (half & 0x7f80U) == 0x7f80U ? 1U : 0U;
  }
  return bad;
}

SPEEDO_MULTIVERSION void pack_fp16(std::size_t n, const float* x, std::byte* target) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) store(target + 2 * i, to_fp16(x[i]));
}

SPEEDO_MULTIVERSION void pack_fp16_residual(std::size_t n, const float* x, float* residual,
                                            std::byte* target) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    const float input = x[i] + residual[i];
    const std::uint16_t half = to_fp16(input);
    store(target + 2 * i, half);
    residual[i] = input - from_fp16(half);
  }
}

SPEEDO_MULTIVERSION std::uint32_t unpack_fp16(std::size_t n, const std::byte* source, float* x) {
  std::uint32_t bad = 0;
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    const auto half = load<std::uint16_t>(source + 2 * i);
    x[i] = from_fp16(half);
    bad |= (half & 0x7c00U) == 0x7c00U ? 1U : 0U;
  }
  return bad;
}

}  // namespace half_kernels

namespace {

std::size_t half_bytes(std::size_t count) { return 2 * count; }

}  // namespace

const DenseCodec kBf16Codec = {
    half_bytes,
    [](std::span<const float> values, std::byte* target) {
      half_kernels::pack_bf16(values.size(), values.data(), target);
    },
    [](std::span<const float> values, std::span<float> residual, std::byte* target) {
      half_kernels::pack_bf16_residual(values.size(), values.data(), residual.data(), target);
    },
    [](const std::byte* source, std::span<float> target) {
      return half_kernels::unpack_bf16(target.size(), source, target.data()) == 0;
    }};

const DenseCodec kFp16Codec = {
    half_bytes,
    [](std::span<const float> values, std::byte* target) {
      half_kernels::pack_fp16(values.size(), values.data(), target);
    },
    [](std::span<const float> values, std::span<float> residual, std::byte* target) {
      half_kernels::pack_fp16_residual(values.size(), values.data(), residual.data(), target);
    },
    [](const std::byte* source, std::span<float> target) {
      return half_kernels::unpack_fp16(target.size(), source, target.data()) == 0;
    }};

}  // namespace speedo
