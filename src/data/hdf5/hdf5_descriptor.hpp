#pragma once

#include <cstdint>

#include "base/descriptor.hpp"

namespace speedo {

// Opens a file of so many bytes, which is open already, by a driver of HDF5's that only reads there
// (pread): no name is looked up, no lock taken. The identifier of an HDF5 file, negative if it is
// none; closing it closes the descriptor. Requires: Hdf5Lock is held.
std::int64_t open_hdf5_descriptor(Descriptor descriptor, std::uint64_t bytes);

// Makes the driver known to the library, which open_hdf5_descriptor() does otherwise.
void prepare_hdf5_descriptors();

}  // namespace speedo
