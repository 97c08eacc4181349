#include <algorithm>
#include <limits>

#include "base/simd.hpp"
#include "codec/bits.hpp"
#include "codec/dense.hpp"
#include "codec/magnitude.hpp"

// For each 256 values, or those that are left: float scale, and of each value a signed byte q from
// -127 to 127. The value is q * scale; the scale is the largest magnitude / 127.

namespace speedo {
namespace int8_kernels {

inline constexpr std::size_t kBlock = 256;
static_assert(kDenseTile % kBlock == 0);

// The largest scale whose 127-fold is finite: FLT_MAX / 127, rounded down.
inline constexpr float kScaleMax = 0x1.020406p+121F;
static_assert(127.0 * double{kScaleMax} <= double{std::numeric_limits<float>::max()});
// Where 1 / scale could be infinite and q * scale lose bits, the block is zeros.
inline constexpr float kScaleMin = std::numeric_limits<float>::min();

// Added to a number y of small magnitude it leaves the nearest whole number, ties to even, in the
// sum's lowest bits.
inline constexpr float kRounder = 0x1.8p23F;

// target += x; returns the largest magnitude's bits.
SPEEDO_MULTIVERSION std::int32_t add(std::size_t n, const float* x, float* target) {
  std::int32_t most = 0;
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    target[i] += x[i];
    const std::int32_t bits = magnitude_bits(target[i]);
    most = bits > most ? bits : most;
  }
  return most;
}

SPEEDO_MULTIVERSION void pack(std::size_t n, const float* x, float inverse, std::byte* target) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    const auto sum = std::bit_cast<std::int32_t>(x[i] * inverse + kRounder);
    target[i] = static_cast<std::byte>(sum - std::bit_cast<std::int32_t>(kRounder));
  }
}

// The same, and leaves in x what the bytes do not say.
SPEEDO_MULTIVERSION void pack_off(std::size_t n, float* x, float inverse, float scale,
                                  std::byte* target) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    const float sum = x[i] * inverse + kRounder;
    target[i] = static_cast<std::byte>(std::bit_cast<std::int32_t>(sum) -
                                       std::bit_cast<std::int32_t>(kRounder));
    x[i] -= scale * (sum - kRounder);
  }
}

SPEEDO_MULTIVERSION std::uint32_t unpack(std::size_t n, const std::byte* source, float scale,
                                         float* x) {
  std::uint32_t bad = 0;
#pragma GCC ivdep
  for (std::size_t i = 0; i < n; ++i) {
    const auto q = static_cast<std::int8_t>(source[i]);
    x[i] = scale * static_cast<float>(q);
    bad |= q == -128 ? 1U : 0U;
  }
  return bad;
}

}  // namespace int8_kernels

namespace {

std::size_t int8_bytes(std::size_t count) {
  const std::size_t blocks = (count + int8_kernels::kBlock - 1) / int8_kernels::kBlock;
  return count + blocks * sizeof(float);
}

// Of a block, written to its front.
struct Int8Scale {
  float scale;
  float inverse;
};

Int8Scale write_scale(std::int32_t most, std::byte* target) {
  const float scale = std::min(std::bit_cast<float>(most) / 127.0F, int8_kernels::kScaleMax);
  const bool zeros = scale < int8_kernels::kScaleMin;
  store(target, zeros ? 0.0F : scale);
  return zeros ? Int8Scale{0.0F, 0.0F} : Int8Scale{scale, 1.0F / scale};
}

void pack_int8(std::span<const float> values, std::byte* target) {
  while (!values.empty()) {
    const auto block = values.first(std::min(int8_kernels::kBlock, values.size()));
    values = values.subspan(block.size());
    const Int8Scale found = write_scale(largest_magnitude(block), target);
    int8_kernels::pack(block.size(), block.data(), found.inverse, target + sizeof(float));
    target += sizeof(float) + block.size();
  }
}

void pack_int8_with_residual(std::span<const float> values, std::span<float> residual,
                             std::byte* target) {
  for (std::size_t start = 0; start < values.size(); start += int8_kernels::kBlock) {
    const std::size_t size = std::min(int8_kernels::kBlock, values.size() - start);
    float* const input = residual.data() + start;
    const Int8Scale found =
        write_scale(int8_kernels::add(size, values.data() + start, input), target);
    int8_kernels::pack_off(size, input, found.inverse, found.scale, target + sizeof(float));
    target += sizeof(float) + size;
  }
}

bool unpack_int8(const std::byte* source, std::span<float> target) {
  while (!target.empty()) {
    const auto block = target.first(std::min(int8_kernels::kBlock, target.size()));
    target = target.subspan(block.size());
    const auto scale = load<float>(source);
    if (!(scale >= 0.0F && scale <= int8_kernels::kScaleMax)) return false;
    const std::byte* const bytes = source + sizeof scale;
    if (int8_kernels::unpack(block.size(), bytes, scale, block.data()) != 0) return false;
    source += sizeof scale + block.size();
  }
  return true;
}

}  // namespace

const DenseCodec kInt8Codec = {int8_bytes, pack_int8, pack_int8_with_residual, unpack_int8};

}  // namespace speedo
