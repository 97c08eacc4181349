#pragma once

#include <filesystem>

#include "cli/options/option_values.hpp"

namespace speedo {

// Where copies of files at URIs lie, as the options of the program say; empty if there is no place
// for them.
std::filesystem::path remote_cache_folder(const OptionValues& values);

// From here on find_file() fetches files at URIs, as the options of the program say. Transfers end
// when a signal asks the process to. Requires: no other thread uses find_file() meanwhile.
void allow_remote_files(const OptionValues& values);

}  // namespace speedo
