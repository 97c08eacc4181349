#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "data/random_file.hpp"

namespace speedo {

// Where a block lies in a table's file, without what follows it (its kind and its checksum).
struct BlockPlace {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// Two varints; nothing if they are not there.
std::optional<BlockPlace> parse_block_place(std::span<const std::byte> bytes);

// A block's entries, in order, with `packed` as room to work in. Error: kData naming the byte: not
// where a block can be, a wrong checksum, bytes that cannot be unpacked. kUnsupported for a kind of
// packing that is not known.
Result<void> read_block(const RandomFile& file, BlockPlace place, std::vector<std::byte>& packed,
                        std::vector<std::byte>& block);

struct BlockEntry {
  std::string key;
  std::size_t value_offset = 0;  // in the block
  std::span<const std::byte> value;
};

// Goes through the entries of a block.
class BlockEntries {
 public:
  // Requires: the bytes outlive it.
  explicit BlockEntries(std::span<const std::byte> block);
  // False behind the last one, or where the block is damaged, which damaged() then says.
  bool next();
  const BlockEntry& entry() const { return entry_; }
  bool damaged() const { return damaged_; }

 private:
  std::span<const std::byte> block_, left_;
  BlockEntry entry_;
  bool damaged_ = false;
};

// A large block that has one entry, known from its first bytes alone: the value's bytes are not
// read, and the checksum is not looked at. Nothing if that cannot be told.
struct LoneEntry {
  std::string key;
  std::size_t value_offset = 0;
  std::uint64_t value_bytes = 0;
};
Result<std::optional<LoneEntry>> peek_lone_entry(const RandomFile& file, BlockPlace place);

}  // namespace speedo
