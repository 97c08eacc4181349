#pragma once

#include <cstdint>

namespace speedo {

// What a helper process does with the HDF5 file that it was given last. The input of all but kOpen
// is the object's path.
enum class Hdf5Task : std::uint32_t {
  kOpen = 16,    // the file is given along; numbers: its bytes; input: its name, for errors
  kHas,          // answer: 0 or 1
  kIsDataset,    // 0 or 1
  kChildren,     // names, a zero behind each
  kDims,         // std::int64_t extents
  kCheckSize,    // nothing
  kReadRows,     // numbers: first row, rows, values; answer: floats
  kReadInteger,  // the number
  kReadString,   // the text
};

}  // namespace speedo
