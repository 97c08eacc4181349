#include "codec/exact.hpp"

#include <cstdint>
#include <cstring>

#include "codec/bits.hpp"
#include "codec/magnitude.hpp"

namespace speedo {
namespace {

constexpr std::size_t kExactHead = 2 * sizeof(std::uint32_t);

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

std::size_t write_exact(std::span<const float> values, std::span<const ExactRange> exact,
                        std::byte* target) {
  for (const ExactRange& range : exact) {
    const std::span<const float> part = values.subspan(range.begin, range.end - range.begin);
    store(target, static_cast<std::uint32_t>(range.begin));
    store(target + sizeof(std::uint32_t), static_cast<std::uint32_t>(part.size()));
    std::memcpy(target + kExactHead, part.data(), part.size_bytes());
    target += kExactHead + part.size_bytes();
  }
  return exact_bytes(exact);
}

bool read_exact(std::span<const std::byte> bytes, std::span<float> target) {
  std::size_t next = 0;
  while (!bytes.empty()) {
    if (bytes.size() < kExactHead) return false;
    const std::size_t begin = load<std::uint32_t>(bytes.data());
    const std::size_t count = load<std::uint32_t>(bytes.data() + sizeof(std::uint32_t));
    bytes = bytes.subspan(kExactHead);
    if (begin < next || begin > target.size() || count > target.size() - begin) return false;
    if (count == 0 || bytes.size() < count * sizeof(float)) return false;
    const std::span<float> part = target.subspan(begin, count);
    std::memcpy(part.data(), bytes.data(), part.size_bytes());
    if (largest_magnitude(part) >= kInfinityBits) return false;
    bytes = bytes.subspan(part.size_bytes());
    next = begin + count;
  }
  return true;
}

}  // namespace speedo
