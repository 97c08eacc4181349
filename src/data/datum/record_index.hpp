#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <speedo/base/result.hpp>

#include "data/random_file.hpp"

namespace speedo {

// Where one key and its value lie in a file. Both formats that hold Datums come down to this, so
// reading record i is one read at a known place.
struct RecordExtent {
  std::uint64_t key_offset = 0;
  std::uint64_t value_offset = 0;
  std::uint32_t key_bytes = 0;
  std::uint32_t value_bytes = 0;
  // Of LMDB: the value has pages of this size for itself, and their header right before it, which
  // is to be checked when it is read: to open a database nothing is read of each record. 0: it has
  // not.
  std::uint32_t page_bytes = 0;
};

// Bytes of a header that lies before a value.
inline constexpr std::size_t kValueHeaderBytes = 16;

// The records of a datumfile, in file order. Error: kData at the first record that is cut off or
// too large, naming its number and offset.
Result<std::vector<RecordExtent>> index_datumfile(const RandomFile& file);

// The records of an LMDB data file (data.mdb), in key order. Every page is checked before it is
// believed, but for those that values have for themselves. Errors: kData naming the page;
// kUnsupported for duplicate keys and named databases.
Result<std::vector<RecordExtent>> index_lmdb(const RandomFile& file);
// The header of a value's own pages. Error: kData naming the page. Requires: extent.page_bytes > 0,
// and kValueHeaderBytes of `header`.
Result<void> check_value_header(const RandomFile& file, const RecordExtent& extent,
                                std::span<const std::byte> header);

}  // namespace speedo
