#pragma once

#include <string>

#include <hdf5.h>

#include <speedo/base/result.hpp>

namespace speedo {

// The one string of variable length that a dataset is. The library takes the file's word for how
// long it is and how much lies there: up to 4 GiB of memory, and more bytes than that memory has
// room for. So it is read without it, up to kHdf5TextBytesMax.
//
// Errors: kData, where the message goes on after the dataset's name. Requires: Hdf5Lock is held;
// `file` was opened by the library's own driver or hdf5_descriptor, and the dataset has one element
// of this type.
Result<std::string> read_variable_text(hid_t file, hid_t dataset);

}  // namespace speedo
