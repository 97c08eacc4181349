#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include <speedo/base/assert.hpp>

#include "base/simd.hpp"
#include "codec/bits.hpp"
#include "codec/dense.hpp"
#include "codec/exact.hpp"

// Seide, Fu, Droppo, Li, Yu 2014, "1-bit stochastic gradient descent", with blocks in place of a
// matrix's columns. For each 512 values, or those that are left: float mean of the negative ones,
// float mean of the others, and a bit for each value, 1 where it is negative, the first in the
// lowest bit. A value becomes its part's mean, so the block's sum stays; an empty part's is 0.
// Values that travel as they are, zeros here, belong to no part.

namespace speedo {
namespace onebit_kernels {

inline constexpr std::size_t kBlock = 512;
static_assert(kDenseTile % kBlock == 0);
inline constexpr std::size_t kHeadBytes = 2 * sizeof(float);

// Sums of up to 512 floats stay finite if each is divided by 512 first, which costs no bit.
inline constexpr float kShare = 1.0F / static_cast<float>(kBlock);

// Partial sums, one for each place in a vector of 16: the order is the same whatever the machine's
// vectors are.
using Lanes = float __attribute__((vector_size(64)));
inline constexpr std::size_t kLanes = sizeof(Lanes) / sizeof(float);

// Sums of the negative values and of the others, divided by kBlock.
SPEEDO_MULTIVERSION void sum_parts(std::size_t n, const float* x, float* sums) {
  Lanes negative{}, positive{}, part;
  const Lanes zero{};
  const std::size_t whole = n - n % kLanes;
  for (std::size_t i = 0; i <= whole; i += kLanes) {
    if (i < whole) {
      std::memcpy(&part, x + i, sizeof part);
    } else {
      part = zero;
      std::memcpy(&part, x + i, (n - i) * sizeof(float));
    }
    part *= kShare;
    negative += part < zero ? part : zero;
    positive += part < zero ? zero : part;
  }
  sums[0] = sums[1] = 0.0F;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    sums[0] += negative[lane];
    sums[1] += positive[lane];
  }
}

// Flags that are 1 where the value is negative; returns how many are.
inline constexpr std::int32_t kMinusZero = std::numeric_limits<std::int32_t>::min();
SPEEDO_MULTIVERSION std::size_t flag_negative(std::size_t n, const float* x,
                                              std::uint8_t* flags) {
  std::uint32_t count = 0;
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    // Greater than 0 if the sign is set and another bit too.
    const bool negative = (std::bit_cast<std::int32_t>(x[i]) ^ kMinusZero) > 0;
    flags[i] = negative ? 1 : 0;
    count += negative ? 1 : 0;
  }
  return count;
}

SPEEDO_MULTIVERSION void choose(std::size_t n, const std::uint8_t* flags, float negative,
                                float positive, float* x) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) x[i] = flags[i] != 0 ? negative : positive;
}

// Of a part of `count` values, from its sum / kBlock.
inline float mean(float sum, std::size_t count) {
  if (count == 0) return 0.0F;
  constexpr float kMost = std::numeric_limits<float>::max();
  const float value = sum * (static_cast<float>(kBlock) / static_cast<float>(count));
  return std::clamp(value, -kMost, kMost);
}

}  // namespace onebit_kernels

namespace {

using OneBitFlags = std::array<std::uint8_t, onebit_kernels::kBlock>;

std::size_t onebit_bytes(std::size_t count) {
  const std::size_t blocks = (count + onebit_kernels::kBlock - 1) / onebit_kernels::kBlock;
  return blocks * onebit_kernels::kHeadBytes + bit_bytes(count);
}

// `apart`: how many of the block's zeros travel as they are.
void pack_onebit_block(std::span<const float> block, std::size_t apart, std::byte* target) {
  OneBitFlags flags{};
  const std::size_t negative_count =
      onebit_kernels::flag_negative(block.size(), block.data(), flags.data());
  for (std::size_t byte = 0; byte < bit_bytes(block.size()); ++byte) {
    const std::uint64_t bits = pack_eight_flags(flags.data() + 8 * byte);
    target[onebit_kernels::kHeadBytes + byte] = static_cast<std::byte>(bits);
  }
  std::array<float, 2> sums;
  onebit_kernels::sum_parts(block.size(), block.data(), sums.data());
  store(target, onebit_kernels::mean(sums[0], negative_count));
  SPEEDO_ASSERT(negative_count + apart <= block.size());
  const std::size_t others = block.size() - negative_count - apart;
  store(target + sizeof(float), onebit_kernels::mean(sums[1], others));
}

void pack_onebit_around(std::span<const float> values, std::size_t start,
                        std::span<const ExactRange> exact, std::byte* target) {
  while (!values.empty()) {
    const auto block = values.first(std::min(onebit_kernels::kBlock, values.size()));
    values = values.subspan(block.size());
    pack_onebit_block(block, exact_within(exact, start, start + block.size()), target);
    start += block.size();
    target += onebit_bytes(block.size());
  }
}

void pack_onebit(std::span<const float> values, std::byte* target) {
  pack_onebit_around(values, 0, {}, target);
}

bool unpack_onebit_block(const std::byte* source, std::span<float> block) {
  const auto negative = load<float>(source), positive = load<float>(source + sizeof(float));
  constexpr float kMost = std::numeric_limits<float>::max();
  if (!(negative <= 0.0F && negative >= -kMost)) return false;
  if (!(positive >= 0.0F && positive <= kMost)) return false;
  const std::byte* const bits = source + onebit_kernels::kHeadBytes;
  const std::size_t bytes = bit_bytes(block.size());
  OneBitFlags flags;
  for (std::size_t byte = 0; byte < bytes; ++byte) {
    unpack_eight_flags(load<std::uint8_t>(bits + byte), flags.data() + 8 * byte);
  }
  // No bit stands behind the last value's.
  if (block.size() % 8 != 0 && load<std::uint8_t>(bits + bytes - 1) >> (block.size() % 8) != 0) {
    return false;
  }
  onebit_kernels::choose(block.size(), flags.data(), negative, positive, block.data());
  return true;
}

bool unpack_onebit(const std::byte* source, std::span<float> target) {
  while (!target.empty()) {
    const auto block = target.first(std::min(onebit_kernels::kBlock, target.size()));
    target = target.subspan(block.size());
    if (!unpack_onebit_block(source, block)) return false;
    source += onebit_bytes(block.size());
  }
  return true;
}

}  // namespace

const DenseCodec kOneBitCodec = {onebit_bytes, pack_onebit, nullptr, unpack_onebit,
                                 pack_onebit_around};

}  // namespace speedo
