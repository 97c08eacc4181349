#include <speedo/base/digest.hpp>

#include <cstdio>

#include <xxhash.h>

namespace speedo {

Digest digest_of(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return Digest{hash.high64, hash.low64};
}

Digest digest_of(std::string_view text) {
  return digest_of(std::as_bytes(std::span(text.data(), text.size())));
}

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::string to_string(const Digest& digest) {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(digest.high),
                static_cast<unsigned long long>(digest.low));
  return text;
}

}  // namespace speedo
