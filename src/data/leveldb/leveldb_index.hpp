#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// Where the value of one key lies.
struct LeveldbRecord {
  // In a table: the block, and the value's place in what that unpacks to. In a log: the value's
  // first byte, and how much of its fragment is left from there on.
  std::uint64_t offset = 0;
  std::uint32_t block_bytes = 0;  // 0: in a log
  std::uint32_t within = 0;
  std::uint32_t value_bytes = 0;
  std::uint32_t file = 0;        // of LeveldbIndex::files
  std::uint64_t key_offset = 0;  // in LeveldbIndex::keys
  std::uint32_t key_bytes = 0;
};

struct LeveldbIndex {
  std::vector<std::filesystem::path> files;
  std::string keys;
  std::vector<LeveldbRecord> records;  // in the order of their keys

  std::string_view key_of(const LeveldbRecord& record) const {
    return std::string_view(keys).substr(static_cast<std::size_t>(record.key_offset),
                                         record.key_bytes);
  }
};

// The records of a database: of each key what was written last. Blocks that hold one large value
// are not read as a whole. Takes 90 bytes and the key for each record while it works. Errors: kData
// naming the file and the byte, kUnsupported.
Result<LeveldbIndex> index_leveldb(const std::filesystem::path& folder);

}  // namespace speedo
