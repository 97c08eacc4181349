#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>
#include <string>

#include <speedo/base/result.hpp>

namespace speedo {

// A new folder of our own where temporary files lie (TMPDIR), or in /tmp if its path would be
// longer than `longest`. Whoever asked removes it: a Guardian, say. Error: kCannotWrite.
Result<std::filesystem::path> make_temporary_folder(
    const std::string& name, std::size_t longest = std::numeric_limits<std::size_t>::max());

}  // namespace speedo
