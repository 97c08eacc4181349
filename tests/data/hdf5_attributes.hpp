#pragma once

#include <string>

#include <speedo/base/result.hpp>

#include "data/hdf5/hdf5_file.hpp"

namespace speedo {

// Attributes of the root of a case's file, which the library reads without a limit: nothing but
// these files, which are ours, has any that are read.
bool has_attribute(const Hdf5Reader& file, const std::string& name);
// Errors: kData, also for one of another type.
Result<double> number_attribute(const Hdf5Reader& file, const std::string& name);
Result<std::string> string_attribute(const Hdf5Reader& file, const std::string& name);

}  // namespace speedo
