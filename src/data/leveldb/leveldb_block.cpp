// in the file := contents kind:u8 crc:u32         kind: 0 as it is, 1 packed by Snappy
//                                                 crc: masked, of contents and kind
// contents    := entry* restart:u32* restarts:u32
// entry       := shared:varint own:varint value_bytes:varint key value
//                the key begins with the `shared` first bytes of the one before

#include "data/leveldb/leveldb_block.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text_of.hpp"
#include "data/claimed_size.hpp"
#include "data/leveldb/byte_cursor.hpp"
#include "data/leveldb/crc32c.hpp"
#include "data/leveldb/snappy.hpp"

namespace speedo {

namespace {

constexpr std::size_t kTrailerBytes = 5;
constexpr std::size_t kRestartBytes = 4;
constexpr std::byte kPlain{0}, kSnappy{1};

// A block that is not larger is read whole at once: the disk reads as much anyway.
constexpr std::uint64_t kPeekBytes = 4096;

// What an entry's key may take: keys are names of files.
constexpr std::size_t kPeekedKeyBytesMax = 2048;

Error damaged_block(const RandomFile& file, BlockPlace place, const std::string& what) {
  return {ErrorCode::kData, fmt::format("LevelDB file '{}': the block at byte {} {}: the file is "
                                        "damaged or truncated; convert the data again",
                                        file.name(), place.offset, what)};
}

Result<void> check_place(const RandomFile& file, BlockPlace place) {
  if (place.bytes < UINT32_MAX && file.holds(place.offset, place.bytes + kTrailerBytes)) return {};
  return damaged_block(file, place, "runs over the end of the file");
}

Error unknown_packing(const RandomFile& file, std::byte kind) {
  return {
      ErrorCode::kUnsupported,
      fmt::format("LevelDB file '{}' has blocks packed in a way that is not known ({}); convert "
                  "the data again",
                  file.name(), std::to_integer<int>(kind))};
}

// What a packed block says it takes; nothing for one that says more than can be.
std::optional<std::size_t> unpacked_size(std::span<const std::byte> packed,
                                         std::uint64_t packed_bytes) {
  const auto size = snappy_size(packed);
  if (!size || *size > saturating_product(packed_bytes, kSnappyRatioMax)) return std::nullopt;
  return static_cast<std::size_t>(*size);
}

}  // namespace

std::optional<BlockPlace> parse_block_place(std::span<const std::byte> bytes) {
  ByteCursor cursor(bytes);
  BlockPlace place;
  place.offset = cursor.varint();
  place.bytes = cursor.varint();
  if (cursor.failed()) return std::nullopt;
  return place;
}

Result<void> read_block(const RandomFile& file, BlockPlace place, std::vector<std::byte>& packed,
                        std::vector<std::byte>& block) {
  SPEEDO_TRY(check_place(file, place));
  packed.resize(static_cast<std::size_t>(place.bytes) + kTrailerBytes);
  SPEEDO_TRY(file.read(place.offset, packed));
  const auto contents = std::span<const std::byte>(packed).first(packed.size() - kTrailerBytes);
  const std::byte kind = packed[contents.size()];
  const std::uint32_t crc = little32(packed.data() + contents.size() + 1);
  if (masked_crc(crc32c(std::span(packed).first(contents.size() + 1))) != crc) {
    return damaged_block(file, place, "does not match its checksum");
  }
  if (kind == kPlain) {
    block.assign(contents.begin(), contents.end());
    return {};
  }
  if (kind != kSnappy) return unknown_packing(file, kind);
  const auto size = unpacked_size(contents, contents.size());
  if (!size || !unpack_snappy(contents, *size, block) || block.size() != *size) {
    return damaged_block(file, place, "cannot be unpacked");
  }
  return {};
}

BlockEntries::BlockEntries(std::span<const std::byte> block) : block_(block) {
  if (block.size() < kRestartBytes) {
    damaged_ = true;
    return;
  }
  const std::uint64_t restarts = little32(block.data() + block.size() - kRestartBytes);
  const std::uint64_t tail = (restarts + 1) * kRestartBytes;
  damaged_ = tail > block.size();
  if (!damaged_) left_ = block.first(block.size() - static_cast<std::size_t>(tail));
}

bool BlockEntries::next() {
  if (left_.empty()) return false;
  ByteCursor cursor(left_);
  const std::uint64_t shared = cursor.varint(), own = cursor.varint();
  const std::uint64_t value_bytes = cursor.varint();
  const auto key = cursor.take(own);
  entry_.value = cursor.take(value_bytes);
  left_ = cursor.left();
  if (cursor.failed() || shared > entry_.key.size()) {
    damaged_ = true;
    left_ = {};
    return false;
  }
  entry_.key.resize(static_cast<std::size_t>(shared));
  entry_.key += text_of(key);
  entry_.value_offset = static_cast<std::size_t>(entry_.value.data() - block_.data());
  return true;
}

Result<std::optional<LoneEntry>> peek_lone_entry(const RandomFile& file, BlockPlace place) {
  using Peeked = std::optional<LoneEntry>;
  SPEEDO_TRY(check_place(file, place));
  if (place.bytes <= 2 * kPeekBytes) return Peeked();
  std::array<std::byte, kPeekBytes> head;
  std::array<std::byte, 1> kind;
  SPEEDO_TRY(file.read(place.offset, head));
  SPEEDO_TRY(file.read(place.offset + place.bytes, kind));
  std::vector<std::byte> unpacked;
  std::span<const std::byte> front(head);
  std::uint64_t bytes = place.bytes;
  if (kind[0] == kSnappy) {
    const auto size = unpacked_size(head, place.bytes);
    if (!size) return damaged_block(file, place, "cannot be unpacked");
    bytes = *size;
    if (!unpack_snappy(head, std::min<std::size_t>(kPeekBytes, *size), unpacked)) {
      return damaged_block(file, place, "cannot be unpacked");
    }
    front = unpacked;
  } else if (kind[0] != kPlain) {
    return unknown_packing(file, kind[0]);
  }
  ByteCursor cursor(front);
  const std::uint64_t shared = cursor.varint(), own = cursor.varint();
  LoneEntry entry;
  entry.value_bytes = cursor.varint();
  if (own > kPeekedKeyBytesMax) return Peeked();
  const auto key = cursor.take(own);
  entry.value_offset = front.size() - cursor.left().size();
  // Behind a lone entry lie one restart and their number.
  const bool lone = !cursor.failed() && shared == 0 && entry.value_bytes < bytes &&
                    entry.value_offset + entry.value_bytes + 2 * kRestartBytes == bytes;
  if (!lone) return Peeked();
  entry.key = text_of(key);
  return Peeked(std::move(entry));
}

}  // namespace speedo
