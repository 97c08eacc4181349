#pragma once

#include <cstdint>
#include <memory>

#include "base/descriptor.hpp"

namespace speedo {

// Where a new HDF5 file is written. The library is told that every write succeeds: a file that it
// cannot flush it cannot close either, keeps half of it, and faults when it ends. So whoever writes
// looks here, and what failed once gets no further write.
struct Hdf5Output {
  Descriptor descriptor{-1};  // open for reading and writing, on a file that is empty
  int failure = 0;            // errno of the first read or write that failed
  bool is_closed = false;     // the library has let go of it, with all that it had to write
};

// The identifier of a new HDF5 file there, negative if the library made none. Closing it leaves the
// descriptor open. Requires: Hdf5Lock is held.
std::int64_t create_hdf5_output(std::shared_ptr<Hdf5Output> output);

}  // namespace speedo
