// log      := block*                       of 32 KiB each, the last one shorter
// block    := fragment* zeros              fewer than 7 bytes left: zeros
// fragment := crc:u32 size:u16 type:u8 bytes
//   type: 1 whole record, 2 first, 3 middle, 4 last; 0 with size 0: the block's rest is unused
//   crc: masked, of the type and the bytes

#include "data/leveldb/leveldb_log.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <speedo/base/assert.hpp>

#include "data/leveldb/crc32c.hpp"

namespace speedo {

namespace {

constexpr std::uint64_t kLogBlockBytes = 32768;
constexpr std::size_t kFragmentHeaderBytes = 7;
enum FragmentType : std::uint8_t { kUnused = 0, kWhole = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

std::uint64_t left_in_block(std::uint64_t offset) {
  return kLogBlockBytes - offset % kLogBlockBytes;
}

// Behind what is too short for a header at a block's end.
std::uint64_t header_from(std::uint64_t offset) {
  return left_in_block(offset) < kFragmentHeaderBytes ? offset + left_in_block(offset) : offset;
}

}  // namespace

struct LeveldbLog::Fragment {
  std::uint8_t type = kUnused;
  bool at_end = false;  // there was none left
  LogFragment place;
};

Error LeveldbLog::damaged(std::uint64_t offset, const char* what) const {
  return {ErrorCode::kData, fmt::format("LevelDB file '{}' {} at byte {}: it is damaged or "
                                        "truncated; convert the data again",
                                        file_.name(), what, offset)};
}

// Its bytes go to the end of the record.
Result<LeveldbLog::Fragment> LeveldbLog::read_fragment() {
  Fragment fragment;
  for (;;) {
    offset_ = header_from(offset_);
    if (offset_ >= file_.bytes()) {
      fragment.at_end = true;
      return fragment;
    }
    std::array<std::byte, kFragmentHeaderBytes> header;
    if (!file_.holds(offset_, header.size())) return damaged(offset_, "ends within a record");
    SPEEDO_TRY(file_.read(offset_, header));
    const std::uint32_t bytes = little16(header.data() + 4);
    fragment.type = std::to_integer<std::uint8_t>(header[6]);
    if (fragment.type == kUnused && bytes == 0) {
      offset_ += left_in_block(offset_);
      continue;
    }
    if (kFragmentHeaderBytes + bytes > left_in_block(offset_)) {
      return damaged(offset_, "has a fragment that leaves its block");
    }
    fragment.place = {offset_ + kFragmentHeaderBytes, bytes};
    if (!file_.holds(fragment.place.offset, bytes)) {
      return damaged(offset_, "ends within a record");
    }
    const std::size_t before = record_.size();
    record_.resize(before + bytes);
    const auto target = std::span(record_).subspan(before);
    SPEEDO_TRY(file_.read(fragment.place.offset, target));
    if (masked_crc(crc32c(target, crc32c(std::span(header).last(1)))) != little32(header.data())) {
      return damaged(offset_, "has bytes that do not match their checksum");
    }
    offset_ = fragment.place.offset + bytes;
    return fragment;
  }
}

Result<bool> LeveldbLog::next() {
  record_.clear();
  fragments_.clear();
  ends_.clear();
  const std::uint64_t start = offset_;
  for (;;) {
    SPEEDO_ASSIGN(const Fragment fragment, read_fragment());
    if (fragment.at_end) {
      if (!fragments_.empty()) return damaged(start, "lacks the end of the record that begins");
      return false;
    }
    const bool first = fragment.type == kWhole || fragment.type == kFirst;
    if (fragment.type > kLast || first != fragments_.empty()) {
      return damaged(start, "has fragments in an impossible order");
    }
    fragments_.push_back(fragment.place);
    ends_.push_back(record_.size());
    if (fragment.type == kWhole || fragment.type == kLast) return true;
  }
}

LogPlace LeveldbLog::place_of(std::size_t position) const {
  const auto end = std::lower_bound(ends_.begin(), ends_.end(), position);
  SPEEDO_ASSERT(end != ends_.end());
  const LogFragment& fragment = fragments_[static_cast<std::size_t>(end - ends_.begin())];
  const std::size_t start = *end - fragment.bytes;
  const auto skipped = static_cast<std::uint32_t>(position - start);
  return {fragment.offset + skipped, fragment.bytes - skipped};
}

Result<void> read_log_bytes(const RandomFile& file, LogPlace place, std::span<std::byte> target) {
  while (!target.empty()) {
    if (place.bytes == 0) {
      const std::uint64_t at = header_from(place.offset);
      std::array<std::byte, kFragmentHeaderBytes> header;
      SPEEDO_TRY(file.read(at, header));
      place = {at + kFragmentHeaderBytes, little16(header.data() + 4)};
      const auto type = std::to_integer<std::uint8_t>(header[6]);
      if (type == kMiddle || type == kLast) continue;
      return Error{
          ErrorCode::kData,
          fmt::format("LevelDB file '{}' changed at byte {} while it was in use", file.name(), at)};
    }
    const auto count = std::min<std::size_t>(place.bytes, target.size());
    SPEEDO_TRY(file.read(place.offset, target.first(count)));
    target = target.subspan(count);
    place.offset += count;
    place.bytes -= static_cast<std::uint32_t>(count);
  }
  return {};
}

}  // namespace speedo
