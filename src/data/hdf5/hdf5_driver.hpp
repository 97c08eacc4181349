#pragma once

#include <cstddef>
#include <cstdint>

#include <hdf5.h>

namespace speedo {

// A file as the library's drivers of ours see it, and the base of what each of them knows besides.
// The library's view comes first, and it hands out pointers to that.
struct Hdf5DriverFile {
  H5FD_t base{};
  haddr_t bytes = 0, end_of_addresses = 0;
};

// The file, of type `File`, whose view this is.
template <class File>
File& hdf5_driver_file(H5FD_t* view) {
  return static_cast<File&>(*reinterpret_cast<Hdf5DriverFile*>(view));
}

// A driver of files that begin with an Hdf5DriverFile. What opens, closes, reads and writes them,
// and how, is the caller's to add.
H5FD_class_t hdf5_driver(const char* name);

// Reads from there up to the file's end, behind which `target` gets zeros, as from the library's
// own drivers. How many bytes came before it; -1: see errno.
std::int64_t read_hdf5_bytes(int descriptor, haddr_t from, std::size_t count, void* target);

}  // namespace speedo
