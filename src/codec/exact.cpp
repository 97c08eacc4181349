#include "codec/exact.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "codec/bits.hpp"
#include "codec/magnitude.hpp"

namespace speedo {
namespace {

constexpr std::size_t kExactHead = 2 * sizeof(std::uint32_t);
constexpr std::uint32_t kExactZeros = std::uint32_t{1} << 31U;
static_assert(kCodecElementsMax < kExactZeros);

bool are_zeros(std::span<const float> part) { return largest_magnitude(part) == 0; }

}  // namespace

std::size_t exact_bytes(std::span<const ExactRange> exact) {
  std::size_t bytes = 0;
  for (const ExactRange& range : exact) {
    bytes += kExactHead + (range.end - range.begin) * sizeof(float);
  }
  return bytes;
}

// Every value alone.
std::size_t exact_bytes_max(std::size_t count) { return count * (kExactHead + sizeof(float)); }

std::size_t exact_within(std::span<const ExactRange> exact, std::size_t begin, std::size_t end) {
  std::size_t count = 0;
  for (const ExactRange& range : exact) {
    if (range.begin >= end) break;
    if (range.end > begin) count += std::min(range.end, end) - std::max(range.begin, begin);
  }
  return count;
}

std::size_t write_exact(std::span<const float> values, std::span<const ExactRange> exact,
                        std::byte* target) {
  std::byte* const front = target;
  for (const ExactRange& range : exact) {
    const std::span<const float> part = values.subspan(range.begin, range.end - range.begin);
    const bool zeros = are_zeros(part);
    const auto count = static_cast<std::uint32_t>(part.size());
    store(target, static_cast<std::uint32_t>(range.begin));
    store(target + sizeof(std::uint32_t), zeros ? count | kExactZeros : count);
    target += kExactHead;
    if (zeros) continue;
    std::memcpy(target, part.data(), part.size_bytes());
    target += part.size_bytes();
  }
  return static_cast<std::size_t>(target - front);
}

bool read_exact(std::span<const std::byte> bytes, std::span<float> target) {
  std::size_t next = 0;
  while (!bytes.empty()) {
    if (bytes.size() < kExactHead) return false;
    const std::size_t begin = load<std::uint32_t>(bytes.data());
    const auto form = load<std::uint32_t>(bytes.data() + sizeof(std::uint32_t));
    const std::size_t count = form & ~kExactZeros;
    bytes = bytes.subspan(kExactHead);
    if (begin < next || begin > target.size() || count > target.size() - begin) return false;
    if (count == 0) return false;
    const std::span<float> part = target.subspan(begin, count);
    next = begin + count;
    if ((form & kExactZeros) != 0) {
      std::ranges::fill(part, 0.0F);
      continue;
    }
    if (bytes.size() < part.size_bytes()) return false;
    std::memcpy(part.data(), bytes.data(), part.size_bytes());
    if (largest_magnitude(part) >= kInfinityBits) return false;
    bytes = bytes.subspan(part.size_bytes());
  }
  return true;
}

}  // namespace speedo
