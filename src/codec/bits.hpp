#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace speedo {

static_assert(std::endian::native == std::endian::little,
              "encoded values lie in memory as they travel");

// What is compared as signed, since vectors of older machines compare only those.
inline constexpr std::int32_t kMagnitudeMask = 0x7fffffff;
inline constexpr std::int32_t kInfinityBits = 0x7f800000;

// Bits of |value|: in the order of the magnitudes, NaN above infinity above the finite ones.
inline std::int32_t magnitude_bits(float value) {
  return std::bit_cast<std::int32_t>(value) & kMagnitudeMask;
}

template <class T>
T load(const std::byte* source) {
  T value;
  std::memcpy(&value, source, sizeof value);
  return value;
}

template <class T>
void store(std::byte* target, T value) {
  std::memcpy(target, &value, sizeof value);
}

constexpr std::size_t bit_bytes(std::size_t count) { return (count + 7) / 8; }

// Eight flags, each a byte 0 or 1, as eight bits, the first one lowest. The factor moves flag i
// from bit 8 i to bit 56 + i; no two products meet.
inline std::uint64_t pack_eight_flags(const std::uint8_t* flags) {
  std::uint64_t eight;
  std::memcpy(&eight, flags, sizeof eight);
  return (eight * 0x0102040810204080U) >> 56U;
}

inline std::uint64_t pack_flags(const std::uint8_t* flags) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < 64; i += 8) word |= pack_eight_flags(flags + i) << i;
  return word;
}

// The way back, but for the flags that are set: they are not 0.
inline void unpack_eight_flags(std::uint8_t bits, std::uint8_t* flags) {
  const std::uint64_t eight = (bits * 0x0101010101010101U) & 0x8040201008040201U;
  std::memcpy(flags, &eight, sizeof eight);
}

}  // namespace speedo
