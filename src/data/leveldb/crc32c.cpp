// Eight bytes a step: table k has the CRC of a byte that k zero bytes follow.

#include "data/leveldb/crc32c.hpp"

#include <array>

#include "data/random_file.hpp"

namespace speedo {

namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78U;  // its bits reversed
constexpr std::size_t kStep = 8;
using Tables = std::array<std::array<std::uint32_t, 256>, kStep>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? kPolynomial : 0U);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < kStep; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8U) ^ tables[0][before & 0xFFU];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) {
  crc = ~crc;
  for (; bytes.size() >= kStep; bytes = bytes.subspan(kStep)) {
    const std::uint32_t low = little32(bytes.data()) ^ crc, high = little32(bytes.data() + 4);
    crc = kTables[7][low & 0xFFU] ^ kTables[6][low >> 8U & 0xFFU] ^ kTables[5][low >> 16U & 0xFFU] ^
          kTables[4][low >> 24U] ^ kTables[3][high & 0xFFU] ^ kTables[2][high >> 8U & 0xFFU] ^
          kTables[1][high >> 16U & 0xFFU] ^ kTables[0][high >> 24U];
  }
  for (const std::byte byte : bytes) {
    crc = (crc >> 8U) ^ kTables[0][(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xFFU];
  }
  return ~crc;
}

}  // namespace speedo
