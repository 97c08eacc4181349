#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace speedo {

// 128 bits of XXH3: tells models and damaged bytes apart. Not for security.
struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const Digest&) const = default;
};

Digest digest_of(std::span<const std::byte> bytes);
Digest digest_of(std::string_view text);

// 64 bits of XXH3, the checksum of stored chunks.
std::uint64_t checksum_of(std::span<const std::byte> bytes);

// 32 hexadecimal digits.
std::string to_string(const Digest& digest);

}  // namespace speedo
