#pragma once

#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "cli/options/read_options.hpp"

namespace speedo {

// How a program begins: read_options(), and from there on find_file() fetches files at URIs as the
// program's --data-cache and the like say, and images and HDF5 files are read where its
// --parser-process says, if it has them. Errors: those of read_options(). Requires: no other thread
// uses find_file() or reads such files meanwhile.
Result<Parsed> read_program_options(const std::vector<std::string>& arguments,
                                    OptionValues& values);

}  // namespace speedo
