#include "store/redis/key_slot.hpp"

#include <array>

#include <speedo/store/layout.hpp>

namespace speedo {
namespace {

// Polynomial x^16 + x^12 + x^5 + 1, the highest bit first, nothing inverted.
constexpr std::uint16_t kPolynomial = 0x1021;

constexpr std::array<std::uint16_t, 256> make_table() {
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < table.size(); ++byte) {
    unsigned crc = byte << 8U;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 0x8000U) != 0 ? (crc << 1U) ^ kPolynomial : crc << 1U;
    }
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}
constexpr std::array<std::uint16_t, 256> kTable = make_table();

std::uint16_t continue_crc(std::uint16_t crc, std::string_view text) {
  for (const char c : text) {
    const unsigned index = ((crc >> 8U) ^ static_cast<unsigned char>(c)) & 0xffU;
    crc = static_cast<std::uint16_t>((static_cast<unsigned>(crc) << 8U) ^ kTable[index]);
  }
  return crc;
}

std::uint16_t slot_of(std::uint16_t crc) { return crc % kKeySlots; }

std::string_view hashed_part(std::string_view key) {
  const std::size_t open = key.find('{');
  if (open == std::string_view::npos) return key;
  const std::size_t close = key.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

}  // namespace

std::uint16_t key_slot(std::string_view key) { return slot_of(continue_crc(0, hashed_part(key))); }

std::vector<std::string> part_tags(const std::string& job) {
  constexpr std::size_t kStride = 7;  // no common factor with the number of parts
  constexpr std::size_t kDistance = kKeySlots / kClusterParts;
  static_assert(kClusterParts % kStride != 0 && kKeySlots % kClusterParts == 0);
  std::vector<std::string> tags(kClusterParts);
  tags[0] = job;
  const std::size_t first = slot_of(continue_crc(0, job));
  const std::string start = job + ':';
  const std::uint16_t crc = continue_crc(0, start);
  for (std::size_t number = 0, found = 1; found < kClusterParts; ++number) {
    const std::string digits = std::to_string(number);
    const std::size_t slot = slot_of(continue_crc(crc, digits));
    const std::size_t from_first = (slot + kKeySlots - first) % kKeySlots;
    if (from_first % kDistance != 0) continue;
    for (std::size_t part = 1; part < kClusterParts; ++part) {
      const bool is_its = part * kStride % kClusterParts == from_first / kDistance;
      if (!is_its || !tags[part].empty()) continue;
      tags[part] = start + digits;
      ++found;
    }
  }
  return tags;
}

}  // namespace speedo
