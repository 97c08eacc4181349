// table        := block* footer
// footer       := meta:place index:place zeros magic:u64      48 bytes
// place        := offset:varint bytes:varint
// index block  := entries: a key not before any of a block's -> the block's place
// data block   := entries: key (sequence << 8 | kind):u64 -> value      kind: 0 deleted, 1 value
// log's record := sequence:u64 count:u32 (kind:u8 key:piece [value:piece])*

#include "data/leveldb/leveldb_index.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/text_of.hpp"
#include "data/claimed_size.hpp"
#include "data/leveldb/byte_cursor.hpp"
#include "data/leveldb/leveldb_block.hpp"
#include "data/leveldb/leveldb_folder.hpp"
#include "data/leveldb/leveldb_log.hpp"

namespace speedo {

namespace {

constexpr std::size_t kTableFooterBytes = 48, kTableMagicBytes = 8, kStampBytes = 8,
                      kBatchHeaderBytes = 12;
constexpr std::uint64_t kTableMagic = 0xDB4775248B80FB57U;
constexpr std::uint64_t kDeleted = 0, kValue = 1;

// What was found, before it is known what of it is the newest of its key.
struct Found {
  LeveldbRecord record;
  std::uint64_t stamp = 0;  // sequence << 8 | kind
};

class Indexer {
 public:
  Result<void> add_table(const LeveldbTableFile& table);
  Result<void> add_log(const std::filesystem::path& path);
  LeveldbIndex finish();

 private:
  Error damaged(const RandomFile& file, const std::string& what) const {
    return {ErrorCode::kData, fmt::format("LevelDB file '{}' {}: it is damaged or truncated; "
                                          "convert the data again",
                                          file.name(), what)};
  }
  Result<void> add_block(const RandomFile& file, BlockPlace place);
  Result<void> add_entry(const RandomFile& file, std::string_view key, LeveldbRecord record);
  Result<void> add_batch(const RandomFile& file, const LeveldbLog& log);
  Result<void> keep(std::string_view key, std::uint64_t stamp, LeveldbRecord record);

  LeveldbIndex index_;
  std::vector<Found> found_;
  std::vector<std::byte> packed_, block_;
};

// Keys share what they begin with, so few bytes can stand for many.
Result<void> Indexer::keep(std::string_view key, std::uint64_t stamp, LeveldbRecord record) {
  const std::uint64_t taken = index_.keys.size() + key.size() +
                              (found_.size() + 1) * (sizeof(Found) + sizeof(LeveldbRecord));
  if (taken > static_cast<std::uint64_t>(process_memory().bytes)) {
    SPEEDO_TRY(check_memory(
        fmt::format("the list of keys in LevelDB file '{}'", index_.files.back().string()), taken));
  }
  record.file = static_cast<std::uint32_t>(index_.files.size() - 1);
  record.key_offset = index_.keys.size();
  record.key_bytes = static_cast<std::uint32_t>(key.size());
  index_.keys += key;
  found_.push_back({record, stamp});
  return {};
}

// `key` still has its stamp behind it.
Result<void> Indexer::add_entry(const RandomFile& file, std::string_view key,
                                LeveldbRecord record) {
  if (key.size() < kStampBytes) return damaged(file, "has a key without its sequence number");
  const std::string_view stamp_bytes = key.substr(key.size() - kStampBytes);
  const std::uint64_t stamp = little64(reinterpret_cast<const std::byte*>(stamp_bytes.data()));
  if ((stamp & 0xFFU) > kValue) return damaged(file, "has a record of an unknown kind");
  return keep(key.substr(0, key.size() - kStampBytes), stamp, record);
}

Result<void> Indexer::add_block(const RandomFile& file, BlockPlace place) {
  LeveldbRecord record;
  record.offset = place.offset;
  record.block_bytes = static_cast<std::uint32_t>(place.bytes);
  SPEEDO_ASSIGN(const std::optional<LoneEntry> lone, peek_lone_entry(file, place));
  if (lone) {
    record.within = static_cast<std::uint32_t>(lone->value_offset);
    record.value_bytes = static_cast<std::uint32_t>(lone->value_bytes);
    return add_entry(file, lone->key, record);
  }
  SPEEDO_TRY(read_block(file, place, packed_, block_));
  BlockEntries entries(block_);
  while (entries.next()) {
    record.within = static_cast<std::uint32_t>(entries.entry().value_offset);
    record.value_bytes = static_cast<std::uint32_t>(entries.entry().value.size());
    SPEEDO_TRY(add_entry(file, entries.entry().key, record));
  }
  if (entries.damaged()) return damaged(file, "has a block whose entries run over its end");
  return {};
}

Result<void> Indexer::add_table(const LeveldbTableFile& table) {
  SPEEDO_ASSIGN(const RandomFile file, RandomFile::open(table.path));
  index_.files.push_back(table.path);
  if (file.bytes() != table.bytes || file.bytes() < kTableFooterBytes) {
    return damaged(file,
                   fmt::format("has {} bytes, but {} were written", file.bytes(), table.bytes));
  }
  std::array<std::byte, kTableFooterBytes> footer;
  SPEEDO_TRY(file.read(file.bytes() - kTableFooterBytes, footer));
  ByteCursor cursor(footer);
  cursor.varint();
  cursor.varint();
  const auto index_place = parse_block_place(cursor.left());
  if (cursor.failed() || !index_place ||
      little64(footer.data() + kTableFooterBytes - kTableMagicBytes) != kTableMagic) {
    return damaged(file, "does not end like a table");
  }
  std::vector<std::byte> index;
  SPEEDO_TRY(read_block(file, *index_place, packed_, index));
  BlockEntries blocks(index);
  std::uint64_t end = 0;
  while (blocks.next()) {
    const auto place = parse_block_place(blocks.entry().value);
    if (!place || place->offset < end) return damaged(file, "has a bad list of blocks");
    SPEEDO_TRY(add_block(file, *place));
    end = place->offset + place->bytes;  // within the file, as it was read
  }
  if (blocks.damaged()) return damaged(file, "has a bad list of blocks");
  return {};
}

Result<void> Indexer::add_batch(const RandomFile& file, const LeveldbLog& log) {
  const std::span<const std::byte> batch(log.record());
  if (batch.size() < kBatchHeaderBytes) return damaged(file, "has a record that is too short");
  std::uint64_t sequence = little64(batch.data());
  std::uint64_t left = little32(batch.data() + 8);
  ByteCursor cursor(batch.subspan(kBatchHeaderBytes));
  for (; left > 0 && !cursor.failed(); --left, ++sequence) {
    const auto kind_byte = cursor.take(1);
    const std::uint64_t kind = kind_byte.empty() ? 0 : std::to_integer<unsigned>(kind_byte[0]);
    const auto key = cursor.piece();
    std::span<const std::byte> value;
    if (kind == kValue) value = cursor.piece();
    if (cursor.failed() || kind > kValue) break;
    LeveldbRecord record;
    if (kind == kValue) {
      const auto position = batch.size() - cursor.left().size() - value.size();
      const LogPlace place = log.place_of(position);
      record.offset = place.offset;
      record.within = place.bytes;
      record.value_bytes = static_cast<std::uint32_t>(value.size());
    }
    SPEEDO_TRY(keep(text_of(key), sequence << 8U | kind, record));
  }
  if (left > 0 || !cursor.left().empty()) {
    return damaged(file, "has a record that does not hold what it announces");
  }
  return {};
}

Result<void> Indexer::add_log(const std::filesystem::path& path) {
  SPEEDO_ASSIGN(const RandomFile file, RandomFile::open(path));
  index_.files.push_back(path);
  LeveldbLog log(file);
  for (;;) {
    SPEEDO_ASSIGN(const bool more, log.next());
    if (!more) return {};
    SPEEDO_TRY(add_batch(file, log));
  }
}

LeveldbIndex Indexer::finish() {
  std::sort(found_.begin(), found_.end(), [this](const Found& a, const Found& b) {
    const int order = index_.key_of(a.record).compare(index_.key_of(b.record));
    return order != 0 ? order < 0 : a.stamp > b.stamp;
  });
  const Found* last = nullptr;
  for (const Found& found : found_) {
    const bool older =
        last != nullptr && index_.key_of(last->record) == index_.key_of(found.record);
    last = &found;
    if (older || (found.stamp & 0xFFU) == kDeleted) continue;
    index_.records.push_back(found.record);
  }
  return std::move(index_);
}

}  // namespace

Result<LeveldbIndex> index_leveldb(const std::filesystem::path& folder) {
  SPEEDO_ASSIGN(const LeveldbFolder files, read_leveldb_folder(folder));
  Indexer indexer;
  for (const LeveldbTableFile& table : files.tables) SPEEDO_TRY(indexer.add_table(table));
  for (const std::filesystem::path& log : files.logs) SPEEDO_TRY(indexer.add_log(log));
  return indexer.finish();
}

}  // namespace speedo
