#include "data/leveldb/leveldb_source.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <speedo/base/assert.hpp>

#include "data/leveldb/leveldb_block.hpp"
#include "data/leveldb/leveldb_log.hpp"
#include "data/datum/record_key.hpp"

namespace speedo {

LeveldbSource::LeveldbSource(std::filesystem::path folder, LeveldbIndex index, ImageColor color)
    : folder_(std::move(folder)), index_(std::move(index)), color_(color) {}

Result<std::unique_ptr<DataSource>> LeveldbSource::open(const std::filesystem::path& folder,
                                                        ImageColor color) {
  SPEEDO_ASSIGN(LeveldbIndex index, index_leveldb(folder));
  if (index.records.empty()) {
    return Error{ErrorCode::kData,
                 fmt::format("data source '{}' holds no records", folder.string())};
  }
  return std::unique_ptr<DataSource>(new LeveldbSource(folder, std::move(index), color));
}

Result<LeveldbSource::OpenFile> LeveldbSource::open_file(std::uint32_t index) {
  const std::lock_guard lock(mutex_);
  if (const OpenFile* const found = open_.find(index)) return *found;
  SPEEDO_ASSIGN(RandomFile opened, RandomFile::open(index_.files[index]));
  return open_.keep(index, std::make_shared<const RandomFile>(std::move(opened)));
}

Result<std::span<const std::byte>> LeveldbSource::value_of(const LeveldbRecord& record,
                                                           Desk& desk) {
  const bool there = desk.in_block != nullptr && record.block_bytes > 0 &&
                     desk.in_block->file == record.file && desk.in_block->offset == record.offset;
  if (!there) {
    desk.in_block = nullptr;
    SPEEDO_ASSIGN(const OpenFile file, open_file(record.file));
    if (record.block_bytes == 0) {
      desk.block.resize(record.value_bytes);
      SPEEDO_TRY(read_log_bytes(*file, {record.offset, record.within}, desk.block));
      return std::span<const std::byte>(desk.block);
    }
    SPEEDO_TRY(read_block(*file, {record.offset, record.block_bytes}, desk.packed, desk.block));
    desk.in_block = &record;
  }
  if (std::size_t{record.within} + record.value_bytes > desk.block.size()) {
    return Error{ErrorCode::kData, fmt::format("LevelDB file '{}' changed while it was in use",
                                               index_.files[record.file].string())};
  }
  return std::span<const std::byte>(desk.block).subspan(record.within, record.value_bytes);
}

Result<void> LeveldbSource::read(std::int64_t index, Record& record) {
  SPEEDO_ASSERT(index >= 0 && index < size());
  const LeveldbRecord& place = index_.records[static_cast<std::size_t>(index)];
  const auto desk = desks_.take(color_);
  auto value = value_of(place, *desk);
  if (!value) {
    return Error{value.error().code,
                 fmt::format("record {} (key '{}'): {}", index, printable_key(index_.key_of(place)),
                             value.error().message)};
  }
  if (auto decoded = desk->decoder.decode(*value, record); !decoded) {
    return Error{decoded.error().code,
                 fmt::format("'{}': record {} (key '{}') {}", folder_.string(), index,
                             printable_key(index_.key_of(place)), decoded.error().message)};
  }
  return {};
}

}  // namespace speedo
