#pragma once

#include <bit>
#include <cstdint>

#include <speedo/base/assert.hpp>

#include "gpu/launch/kernel.hpp"
#include "gpu/support/array.hpp"

namespace speedo::gpu {

// What a thread of a device loads at once: 16 bytes of neighbouring channels, and a byte for each.

// Calls body(0), ... body(kCount - 1), one behind the other in a device's code: what they index
// stays in registers.
template <int kCount, class Body>
SPEEDO_HOST_DEVICE void unrolled(const Body& body) {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (int i = 0; i < kCount; ++i) body(i);
}

template <class Words>
SPEEDO_HOST_DEVICE Words load_words(const void* array, std::int64_t i) {
  const Words* const place = static_cast<const Words*>(array) + i;
#if !defined(__CUDA_ARCH__)
  // A device stops at what the host would not mind.
  SPEEDO_ASSERT(reinterpret_cast<std::uintptr_t>(place) % alignof(Words) == 0);
#endif
  return *place;
}
template <class Words>
SPEEDO_HOST_DEVICE void store_words(void* array, std::int64_t i, const Words& words) {
  Words* const place = static_cast<Words*>(array) + i;
#if !defined(__CUDA_ARCH__)
  SPEEDO_ASSERT(reinterpret_cast<std::uintptr_t>(place) % alignof(Words) == 0);
#endif
  *place = words;
}

// Elements, the first one in the lowest bits.
template <ElementType kType>
struct alignas(16) LaneValues {
  static constexpr int kLanes = 16 / static_cast<int>(bytes_of_element(kType));
  // A word of minus infinities.
  static constexpr std::uint32_t kLowest =
      kType == ElementType::kFloat32 ? 0xff800000U : 0xff80ff80U;
  std::uint32_t words[4];

  SPEEDO_HOST_DEVICE float get(int lane) const {
    if constexpr (kType == ElementType::kFloat32) {
      return std::bit_cast<float>(words[lane]);
    } else {
      const std::uint32_t word = words[lane / 2];
      return std::bit_cast<float>(lane % 2 == 0 ? word << 16U : word & 0xffff0000U);
    }
  }
  // Rounded, of results of additions: their NaNs are quiet.
  SPEEDO_HOST_DEVICE static LaneValues of_sums(const float (&values)[kLanes]) {
    return made_of(values, [](float value) { return rounded(value); });
  }
  // Of numbers of that type.
  SPEEDO_HOST_DEVICE static LaneValues of_exact(const float (&values)[kLanes]) {
    return made_of(values, [](float value) { return std::bit_cast<std::uint32_t>(value); });
  }

 private:
  // to_bfloat16() in the upper half of a word, whose lower half is anything: that takes fewer
  // instructions where two are put into one word.
  SPEEDO_HOST_DEVICE static std::uint32_t rounded(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return value != value ? bits : bits + 0x7fffU + (bits >> 16U & 1U);
  }
  template <class Upper>
  SPEEDO_HOST_DEVICE static LaneValues made_of(const float (&values)[kLanes], const Upper& upper) {
    LaneValues made;
    unrolled<4>([&](int k) {
      if constexpr (kType == ElementType::kFloat32) {
        made.words[k] = std::bit_cast<std::uint32_t>(values[k]);
      } else {
        made.words[k] = upper(values[2 * k]) >> 16U | (upper(values[2 * k + 1]) & 0xffff0000U);
      }
    });
    return made;
  }
};

// A number below 256 for each of those channels.
template <int kLanes>
struct alignas(kLanes) LaneBytes {
  static constexpr std::uint32_t kOnes = 0x01010101U;
  std::uint32_t words[kLanes / 4];

  SPEEDO_HOST_DEVICE bool is(int lane, int number) const {
    const std::uint32_t differ = words[lane / 4] ^ static_cast<std::uint32_t>(number) * kOnes;
    return (differ & 0xffU << (8 * (lane % 4))) == 0;
  }
  // Of the lowest 8 bits of each.
  SPEEDO_HOST_DEVICE static LaneBytes of(const int (&numbers)[kLanes]) {
    LaneBytes made;
    unrolled<kLanes / 4>([&](int k) {
      made.words[k] = 0;
      unrolled<4>([&](int j) {
        const auto number = static_cast<std::uint32_t>(numbers[4 * k + j]);
        made.words[k] |= (number & 0xffU) << (8 * j);
      });
    });
    return made;
  }
};

}  // namespace speedo::gpu
