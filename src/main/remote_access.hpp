#pragma once

#include "cli/options/option_values.hpp"

namespace speedo {

// From here on find_file() fetches files at URIs, as the options of the program say. Transfers end
// when a signal asks the process to. Requires: no other thread uses find_file() meanwhile.
void allow_remote_files(const OptionValues& values);

}  // namespace speedo
