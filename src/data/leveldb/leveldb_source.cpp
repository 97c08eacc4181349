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

std::string LeveldbSource::name_of(std::int64_t index) const {
  const LeveldbRecord& place = index_.records[static_cast<std::size_t>(index)];
  return fmt::format("record {} (key '{}')", index, printable_key(index_.key_of(place)));
}

Result<std::span<const std::byte>> LeveldbSource::value_of(std::int64_t index, Desk& desk) {
  SPEEDO_ASSERT(index >= 0 && index < size());
  auto value = unnamed_value_of(index_.records[static_cast<std::size_t>(index)], desk);
  if (value) return value;
  return Error{value.error().code,
               fmt::format("{}: {}", name_of(index), value.error().message)};
}

Result<std::span<const std::byte>> LeveldbSource::unnamed_value_of(const LeveldbRecord& record,
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
  RecordRead wanted{index, &record};
  read_group(std::span(&wanted, 1));
  return std::move(wanted.outcome);
}

Result<bool> LeveldbSource::read_datum(std::int64_t index, std::string& datum) {
  const auto desk = desks_.take(color_);
  SPEEDO_ASSIGN(const std::span<const std::byte> value, value_of(index, *desk));
  datum.assign(reinterpret_cast<const char*>(value.data()), value.size());
  return true;
}

void LeveldbSource::read_group(std::span<RecordRead> reads) {
  const auto desk = desks_.take(color_);
  desk->group.read(
      reads, [&](std::int64_t index) { return value_of(index, *desk); },
      [this](std::int64_t index, const Error& error) {
        return Error{error.code,
                     fmt::format("'{}': {} {}", folder_.string(), name_of(index), error.message)};
      });
}

}  // namespace speedo
