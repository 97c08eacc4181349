// Reads the pages of an LMDB data file, format version 1 (LMDB 0.9), 64-bit little-endian.
//
//   file     := meta meta page*                         page p begins at p * page_size
//   meta     := header magic:u32 version:u32 address:u64 map_size:u64 db(free) db(main)
//               last_page:u64 transaction:u64           the meta with the newer transaction counts
//   db       := page_size:u32 flags:u16 depth:u16 branches:u64 leaves:u64 overflows:u64
//               entries:u64 root:u64                    root = all ones: empty
//   header   := page:u64 pad:u16 flags:u16 lower:u16 upper:u16      (lower, upper: a u32 page count
//                                                                    on overflow pages)
//   branch, leaf := header pointer:u16*  ... nodes      lower - 16 = bytes of pointers
//   node     := low:u16 high:u16 flags:u16 key_size:u16 key value
//               branch: child page = low | high << 16 | flags << 32
//               leaf: value size = low | high << 16; with flag 1 the value is a page number, and
//               the bytes begin 16 bytes into that page and run on over the following ones
//
// LMDB itself trusts these numbers and faults on a damaged or shortened file; here each is checked.

#include "data/datum/record_index.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>
#include <speedo/base/limits.hpp>

namespace speedo {

namespace {

constexpr std::size_t kHeaderBytes = kValueHeaderBytes;
constexpr std::size_t kNodeBytes = 8, kMetaBytes = 136, kDbBytes = 48;
constexpr std::uint32_t kMagic = 0xBEEFC0DE, kVersion = 1;
constexpr std::uint64_t kNoPage = ~std::uint64_t{0};
constexpr std::uint16_t kBranch = 0x01, kLeaf = 0x02, kOverflow = 0x04, kMeta = 0x08;
constexpr std::uint16_t kBigData = 0x01, kSubDatabase = 0x02;
constexpr std::uint32_t kPageBytesMin = 256, kPageBytesMax = 65536;
constexpr int kDepthMax = 32;  // LMDB's own bound on the height of the tree

struct Meta {
  std::uint32_t page_bytes = 0;
  std::uint16_t flags = 0;
  std::uint64_t entries = 0, root = kNoPage, last_page = 0, transaction = 0;
};

Error damaged_page(const RandomFile& file, std::uint64_t page, const std::string& what) {
  return Error{ErrorCode::kData, fmt::format("LMDB file '{}': page {} {}: the file is damaged or "
                                             "truncated; convert the data again",
                                             file.name(), page, what)};
}

class LmdbWalk {
 public:
  explicit LmdbWalk(const RandomFile& file) : file_(file) {}

  Result<std::vector<RecordExtent>> run();

 private:
  Error damaged(std::uint64_t page, const std::string& what) const {
    return damaged_page(file_, page, what);
  }
  Result<Meta> read_meta(std::uint64_t offset) const;
  Result<void> choose_meta();
  Result<void> read_page(std::uint64_t page, std::vector<std::byte>& bytes) const;
  Result<void> walk(std::uint64_t page, int depth);
  Result<void> add_record(std::uint64_t page, std::span<const std::byte> bytes, std::size_t node);
  Result<std::uint64_t> overflow_offset(std::uint64_t page, std::uint64_t first,
                                        std::uint64_t bytes) const;

  const RandomFile& file_;
  Meta meta_;
  std::uint64_t pages_seen_ = 0;
  std::vector<RecordExtent> records_;
};

Result<Meta> LmdbWalk::read_meta(std::uint64_t offset) const {
  std::array<std::byte, kHeaderBytes + kMetaBytes> bytes;
  if (!file_.holds(offset, bytes.size())) return damaged(0, "is shorter than an LMDB header");
  SPEEDO_TRY(file_.read(offset, bytes));
  const std::byte* meta = bytes.data() + kHeaderBytes;
  if ((little16(bytes.data() + 10) & kMeta) == 0 || little32(meta) != kMagic) {
    return damaged(0, "is not an LMDB header");
  }
  if (little32(meta + 4) != kVersion) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("LMDB file '{}' has format version {}, only {} is known", file_.name(),
                             little32(meta + 4), kVersion)};
  }
  const std::byte* main_db = meta + 24 + kDbBytes;
  Meta result;
  result.page_bytes = little32(meta + 24);
  result.flags = little16(main_db + 4);
  result.entries = little64(main_db + 32);
  result.root = little64(main_db + 40);
  result.last_page = little64(meta + 24 + 2 * kDbBytes);
  result.transaction = little64(meta + 24 + 2 * kDbBytes + 8);
  const std::uint32_t size = result.page_bytes;
  if (size < kPageBytesMin || size > kPageBytesMax || (size & (size - 1)) != 0) {
    return damaged(0, fmt::format("announces pages of {} bytes", size));
  }
  return result;
}

Result<void> LmdbWalk::choose_meta() {
  SPEEDO_ASSIGN(meta_, read_meta(0));
  SPEEDO_ASSIGN(const Meta second, read_meta(meta_.page_bytes));
  if (second.page_bytes != meta_.page_bytes) return damaged(1, "disagrees on the page size");
  if (second.transaction > meta_.transaction) meta_ = second;
  // Bounds the walk by what exists, whatever the header says.
  meta_.last_page = std::min(meta_.last_page, file_.bytes() / meta_.page_bytes);
  if (meta_.flags != 0) {
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("LMDB file '{}' has duplicate, integer or reversed keys (flags {:#x}); "
                    "only plain databases hold Datums",
                    file_.name(), meta_.flags)};
  }
  return {};
}

Result<void> LmdbWalk::read_page(std::uint64_t page, std::vector<std::byte>& bytes) const {
  if (page > meta_.last_page || !file_.holds(page * meta_.page_bytes, meta_.page_bytes)) {
    return damaged(page, "lies behind the end of the file");
  }
  bytes.resize(meta_.page_bytes);
  SPEEDO_TRY(file_.read(page * meta_.page_bytes, bytes));
  if (little64(bytes.data()) != page) return damaged(page, "carries another page's number");
  return {};
}

// Where a value that did not fit on its leaf page lies.
Result<std::uint64_t> LmdbWalk::overflow_offset(std::uint64_t page, std::uint64_t first,
                                                std::uint64_t bytes) const {
  if (first > meta_.last_page || !file_.holds(first * meta_.page_bytes, kHeaderBytes + bytes)) {
    return damaged(page, fmt::format("points to a value of {} bytes at page {}, behind the end of "
                                     "the file",
                                     bytes, first));
  }
  return first * meta_.page_bytes + kHeaderBytes;
}

Result<void> LmdbWalk::add_record(std::uint64_t page, std::span<const std::byte> bytes,
                                  std::size_t node) {
  RecordExtent record;
  record.value_bytes = little32(bytes.data() + node);
  const std::uint16_t flags = little16(bytes.data() + node + 4);
  if (flags == kSubDatabase && record.value_bytes == kDbBytes) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("LMDB file '{}' holds named databases; only the unnamed database of "
                             "Caffe's tools can be read",
                             file_.name())};
  }
  if ((flags & ~kBigData) != 0) {
    return damaged(page, fmt::format("has a node of an unknown kind (flags {:#x})", flags));
  }
  record.key_bytes = little16(bytes.data() + node + 6);
  const std::size_t value = node + kNodeBytes + record.key_bytes;
  const std::size_t stored = (flags & kBigData) != 0 ? sizeof(std::uint64_t) : record.value_bytes;
  if (value > bytes.size() || stored > bytes.size() - value) {
    return damaged(page, "has a node that runs over its end");
  }
  record.key_offset = page * meta_.page_bytes + node + kNodeBytes;
  record.value_offset = page * meta_.page_bytes + value;
  if ((flags & kBigData) != 0) {
    SPEEDO_ASSIGN(record.value_offset,
                  overflow_offset(page, little64(bytes.data() + value), record.value_bytes));
    record.page_bytes = meta_.page_bytes;
  }
  if (records_.size() >= meta_.entries) return damaged(page, "holds more records than announced");
  records_.push_back(record);
  return {};
}

Result<void> LmdbWalk::walk(std::uint64_t page, int depth) {
  std::vector<std::byte> bytes;
  SPEEDO_TRY(read_page(page, bytes));
  if (depth > kDepthMax || ++pages_seen_ > meta_.last_page) {
    return damaged(page, "closes a circle of pages");
  }
  const std::uint16_t flags = little16(bytes.data() + 10), lower = little16(bytes.data() + 12);
  const bool leaf = flags == kLeaf;
  if (!leaf && flags != kBranch) {
    return damaged(page, fmt::format("is of an unexpected kind ({:#x})", flags));
  }
  if (lower < kHeaderBytes || lower > bytes.size() || lower % 2 != 0) {
    return damaged(page, "has a bad list of nodes");
  }
  for (std::size_t pointer = kHeaderBytes; pointer < lower; pointer += 2) {
    const std::size_t node = little16(bytes.data() + pointer);
    if (node < lower || node + kNodeBytes > bytes.size()) {
      return damaged(page, "points to a node outside itself");
    }
    if (leaf) {
      SPEEDO_TRY(add_record(page, bytes, node));
    } else {
      const std::uint64_t high = little16(bytes.data() + node + 4);
      SPEEDO_TRY(walk(little32(bytes.data() + node) | high << 32U, depth + 1));
    }
  }
  return {};
}

Result<std::vector<RecordExtent>> LmdbWalk::run() {
  SPEEDO_TRY(choose_meta());
  if (meta_.root != kNoPage) SPEEDO_TRY(walk(meta_.root, 1));
  if (records_.size() != meta_.entries) {
    return damaged(meta_.root, fmt::format("leads to {} records, but {} are announced",
                                           records_.size(), meta_.entries));
  }
  return std::move(records_);
}

}  // namespace

Result<std::vector<RecordExtent>> index_lmdb(const RandomFile& file) {
  return LmdbWalk(file).run();
}

Result<void> check_value_header(const RandomFile& file, const RecordExtent& extent,
                                std::span<const std::byte> header) {
  const std::uint64_t page = extent.value_offset / extent.page_bytes;
  const std::uint64_t pages = little32(header.data() + 12);
  if ((little16(header.data() + 10) & kOverflow) != 0 && little64(header.data()) == page &&
      pages * extent.page_bytes >= kHeaderBytes + extent.value_bytes) {
    return {};
  }
  return damaged_page(file, page, fmt::format("does not hold the value of {} bytes it should",
                                              extent.value_bytes));
}

}  // namespace speedo
