// packed  := size:varint element*
// element := tag ...      the tag's low two bits are its kind
//   0: literal. High six bits n: n + 1 bytes follow; n = 60..63: the length - 1 is in n - 59 bytes
//   1: copy of 4 + bits 2..4 bytes from bits 5..7 * 256 + next byte back
//   2: copy of 1 + high six bits from next two bytes back; 3: from next four bytes back
// A copy may run into what it writes itself.

#include "data/leveldb/snappy.hpp"

#include <algorithm>

#include "data/leveldb/byte_cursor.hpp"

namespace speedo {

namespace {

std::uint64_t little_number(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) {
    value = value << 8U | std::to_integer<std::uint64_t>(bytes[i - 1]);
  }
  return value;
}

// False if there is nothing so far back.
bool copy_back(std::uint64_t offset, std::uint64_t count, std::size_t bytes_max,
               std::vector<std::byte>& unpacked) {
  if (offset == 0 || offset > unpacked.size()) return false;
  const std::size_t end = unpacked.size();
  unpacked.resize(
      end + static_cast<std::size_t>(std::min<std::uint64_t>(count, bytes_max - unpacked.size())));
  const std::size_t back = static_cast<std::size_t>(offset);
  for (std::size_t i = end; i < unpacked.size(); ++i) unpacked[i] = unpacked[i - back];
  return true;
}

}  // namespace

std::optional<std::uint64_t> snappy_size(std::span<const std::byte> packed) {
  ByteCursor cursor(packed);
  const std::uint64_t size = cursor.varint();
  if (cursor.failed() || size > UINT32_MAX) return std::nullopt;
  return size;
}

bool unpack_snappy(std::span<const std::byte> packed, std::size_t bytes_max,
                   std::vector<std::byte>& unpacked) {
  constexpr unsigned kLongLiteral = 60;
  unpacked.clear();
  unpacked.reserve(bytes_max);
  ByteCursor cursor(packed);
  cursor.varint();
  while (!cursor.failed() && !cursor.left().empty() && unpacked.size() < bytes_max) {
    const auto tag = std::to_integer<unsigned>(cursor.take(1)[0]);
    const unsigned high = tag >> 2U;
    if ((tag & 3U) == 0) {
      std::uint64_t count = high;
      if (high >= kLongLiteral) count = little_number(cursor.take(high - kLongLiteral + 1));
      const auto literal = cursor.take(
          std::min<std::uint64_t>({count + 1, bytes_max - unpacked.size(), cursor.left().size()}));
      unpacked.insert(unpacked.end(), literal.begin(), literal.end());
      continue;
    }
    const unsigned bytes = (tag & 3U) == 1 ? 1 : (tag & 3U) == 2 ? 2 : 4;
    const auto place = cursor.take(bytes);
    if (cursor.failed()) break;
    const bool near = bytes == 1;
    const std::uint64_t offset =
        little_number(place) + (near ? std::uint64_t{tag >> 5U} << 8U : 0U);
    if (!copy_back(offset, near ? 4 + (high & 7U) : high + 1, bytes_max, unpacked)) return false;
  }
  return true;
}

}  // namespace speedo
