#include "data/claimed_size.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace speedo {

namespace {

std::string size_text(std::uint64_t bytes) {
  return format_bytes(static_cast<std::int64_t>(std::min<std::uint64_t>(bytes, INT64_MAX)));
}

}  // namespace

const MemoryLimit& process_memory() {
  static const MemoryLimit limit = memory_limit();
  return limit;
}

std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

std::uint64_t array_bytes(std::span<const std::int64_t> extents, std::uint64_t element_bytes) {
  std::uint64_t bytes = element_bytes;
  for (const std::int64_t extent : extents) {
    bytes = saturating_product(bytes, static_cast<std::uint64_t>(extent));
  }
  return bytes;
}

Result<void> check_claim(const std::string& subject, const ClaimedSize& claim) {
  if (claim.bytes <= std::max(claim.capacity, kHarmlessBytes)) return {};
  return Error{ErrorCode::kData,
               fmt::format("{} announces {}, but the bytes that are there can hold {} at most: it "
                           "is damaged, or made to exhaust the memory; make it again",
                           subject, size_text(claim.bytes), size_text(claim.capacity))};
}

Result<void> check_memory(const std::string& subject, std::uint64_t bytes,
                          const MemoryLimit& limit) {
  if (bytes <= static_cast<std::uint64_t>(std::max<std::int64_t>(limit.bytes, 0))) return {};
  return Error{ErrorCode::kData,
               fmt::format("{} takes {} of memory, but {} is {}: split it, or use a machine with "
                           "more memory",
                           subject, size_text(bytes), limit.what,
                           size_text(static_cast<std::uint64_t>(limit.bytes)))};
}

}  // namespace speedo
