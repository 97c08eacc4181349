#include "fuzz/leveldb_files.hpp"

#include <cstring>
#include <span>

#include "data/leveldb/crc32c.hpp"

namespace speedo::fuzz {
namespace {

constexpr std::size_t kLogBlockBytes = 32768, kFragmentHeaderBytes = 7, kFooterBytes = 48,
                      kTrailerBytes = 5;
constexpr std::uint64_t kTableMagic = 0xDB4775248B80FB57U;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

void put_crc(std::string& text, std::size_t offset, std::string_view of) {
  const std::uint32_t crc = masked_crc(crc32c(bytes_of(of)));
  std::memcpy(text.data() + offset, &crc, sizeof crc);
}

bool mend_block(std::string& table, const BlockPlace& place) {
  if (place.offset > table.size() || place.bytes > table.size() - place.offset) return false;
  if (table.size() - place.offset - place.bytes < kTrailerBytes) return false;
  const auto offset = static_cast<std::size_t>(place.offset);
  const auto size = static_cast<std::size_t>(place.bytes) + 1;  // with its kind
  put_crc(table, offset + size, std::string(table, offset, size));
  return true;
}

}  // namespace

std::string with_log_checksums(std::string log) {
  std::size_t offset = 0;
  while (offset + kFragmentHeaderBytes <= log.size()) {
    const std::size_t left = kLogBlockBytes - offset % kLogBlockBytes;
    if (left < kFragmentHeaderBytes) {
      offset += left;
      continue;
    }
    std::uint16_t size = 0;
    std::memcpy(&size, log.data() + offset + 4, sizeof size);
    const std::size_t end = offset + kFragmentHeaderBytes + size;
    if (end > log.size()) break;
    put_crc(log, offset, std::string(log, offset + 6, std::size_t{size} + 1));
    offset = end;
  }
  return log;
}

std::string with_table_checksums(std::string table) {
  if (table.size() < kFooterBytes) return table;
  const std::size_t footer = table.size() - kFooterBytes;
  std::memcpy(table.data() + table.size() - sizeof kTableMagic, &kTableMagic, sizeof kTableMagic);
  const std::string places = table.substr(footer, kFooterBytes - sizeof kTableMagic);
  const auto meta = parse_block_place(bytes_of(places));
  if (!meta) return table;
  // The index block's place stands behind the other one: two numbers of seven bits a byte.
  std::size_t second = 0;
  for (int numbers = 0; numbers < 2 && second < places.size(); ++second) {
    if ((static_cast<unsigned char>(places[second]) & 0x80U) == 0) ++numbers;
  }
  const auto index = parse_block_place(bytes_of(std::string_view(places).substr(second)));
  if (!index || !mend_block(table, *index)) return table;
  const std::string block = table.substr(static_cast<std::size_t>(index->offset),
                                         static_cast<std::size_t>(index->bytes));
  BlockEntries entries(bytes_of(block));
  while (entries.next()) {
    if (const auto place = parse_block_place(entries.entry().value)) mend_block(table, *place);
  }
  return table;
}

std::string block_with_trailer(std::string block, char kind) {
  block += kind;
  const std::uint32_t crc = masked_crc(crc32c(bytes_of(block)));
  block.append(reinterpret_cast<const char*>(&crc), sizeof crc);
  return block;
}

}  // namespace speedo::fuzz
