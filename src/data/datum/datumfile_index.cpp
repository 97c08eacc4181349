// SpeeDO's datumfile: records one after the other, no header, no index.
//
//   record := record_size:u32 key_size:u32 key value_size:u32 value     (little-endian)
//
// record_size = key_size + value_size + 8 is written but, as in SpeeDO, only checked against the
// limit. Up to three bytes left where a record could begin are the end of the data.

#include "data/datum/record_index.hpp"

#include <array>

#include <fmt/format.h>
#include <speedo/base/limits.hpp>

namespace speedo {

namespace {

constexpr std::uint64_t kSizeBytes = 4;

// Reads one of a record's sizes at `offset` and moves on behind it.
Result<std::uint32_t> read_size(const RandomFile& file, std::uint64_t& offset, std::size_t record) {
  if (!file.holds(offset, kSizeBytes)) {
    return Error{ErrorCode::kData,
                 fmt::format("datumfile '{}': record {} is cut off at byte {} of {}", file.name(),
                             record, offset, file.bytes())};
  }
  std::array<std::byte, kSizeBytes> bytes;
  SPEEDO_TRY(file.read(offset, bytes));
  const std::uint32_t size = little32(bytes.data());
  if (size > kDatumfileRecordBytesMax) {
    return Error{ErrorCode::kData,
                 fmt::format("datumfile '{}': record {} announces {} bytes at byte {}, above the "
                             "limit of {}: not a datumfile, or damaged",
                             file.name(), record, size, offset, kDatumfileRecordBytesMax)};
  }
  offset += kSizeBytes;
  return size;
}

}  // namespace

Result<std::vector<RecordExtent>> index_datumfile(const RandomFile& file) {
  std::vector<RecordExtent> records;
  std::uint64_t offset = 0;
  while (file.holds(offset, kSizeBytes)) {
    RecordExtent record;
    SPEEDO_ASSIGN([[maybe_unused]] const std::uint32_t record_size,
                  read_size(file, offset, records.size()));
    SPEEDO_ASSIGN(record.key_bytes, read_size(file, offset, records.size()));
    record.key_offset = offset;
    offset += record.key_bytes;
    SPEEDO_ASSIGN(record.value_bytes, read_size(file, offset, records.size()));
    record.value_offset = offset;
    if (!file.holds(offset, record.value_bytes)) {
      return Error{
          ErrorCode::kData,
          fmt::format("datumfile '{}': record {} is cut off: its value needs {} bytes, {} "
                      "are left",
                      file.name(), records.size(), record.value_bytes, file.bytes() - offset)};
    }
    offset += record.value_bytes;
    records.push_back(record);
  }
  return records;
}

}  // namespace speedo
