#pragma once

#include "cli/options/option_values.hpp"

namespace speedo {

// From here on images and HDF5 files are read where the options of the program say. Requires: no
// other thread reads meanwhile.
void employ_parsers(const OptionValues& values);

}  // namespace speedo
