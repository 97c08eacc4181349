#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace speedo {

// CRC-32 with Castagnoli's polynomial, of these bytes, or of those that `crc` is of and these.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0);

// As LevelDB stores it: turned and moved, so that the CRC of bytes with CRCs in them is one.
constexpr std::uint32_t masked_crc(std::uint32_t crc) {
  return ((crc >> 15U) | (crc << 17U)) + 0xA282EAD8U;
}

}  // namespace speedo
