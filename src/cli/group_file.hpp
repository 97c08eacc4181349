#pragma once

#include <string>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

using Groups = std::vector<std::vector<std::string>>;

// The groups of `--groups FILE`: one a line, names of workers or of hosts separated by blanks, '#'
// begins a comment, empty lines count for nothing. Error: kConfig, with file and line, for a name
// that comes twice, or no group at all; also for a missing file.
Result<Groups> read_group_file(const std::string& path);

}  // namespace speedo
