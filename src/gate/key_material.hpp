#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <speedo/base/result.hpp>

namespace speedo {

// The arithmetic of keys, by OpenSSL. Byte strings are std::string.

inline constexpr std::size_t kHmacBytes = 32;

// HMAC-SHA256: kHmacBytes.
std::string hmac_sha256(std::string_view key, std::string_view message);

// HKDF-SHA256 (RFC 5869), at most 255 * 32 bytes.
std::string hkdf_sha256(std::string_view key, std::string_view salt, std::string_view info,
                        std::size_t bytes);

std::string sha256(std::string_view message);

// Takes as long for texts that differ at their end as for others. Of one length.
bool equal_in_constant_time(std::string_view a, std::string_view b);

// From the system's source of keys. Error: kInternal if it gives nothing.
Result<std::string> random_bytes(std::size_t count);

// Overwrites a key that is not needed any more.
void wipe(std::string& key);

}  // namespace speedo
