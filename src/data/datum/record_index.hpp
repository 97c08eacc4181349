#pragma once

#include <cstdint>
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
};

// The records of a datumfile, in file order. Error: kData at the first record that is cut off or
// too large, naming its number and offset.
Result<std::vector<RecordExtent>> index_datumfile(const RandomFile& file);

// The records of an LMDB data file (data.mdb), in key order. Every page is checked before it is
// believed. Errors: kData naming the page; kUnsupported for duplicate keys and named databases.
Result<std::vector<RecordExtent>> index_lmdb(const RandomFile& file);

}  // namespace speedo
