#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>
#include <string>

#include <speedo/base/result.hpp>

namespace speedo {

// In a temporary folder, a file that is locked as long as a process that uses the folder lives: the
// one that made it, and the Guardian that it forked. A folder that is kept for the user has none,
// nor has one on a file system that locks nothing: no start removes it.
// The folder is locked as well, for systemd-tmpfiles.
inline constexpr const char* kFolderInUse = ".in-use";

// A new folder of our own where temporary files lie (TMPDIR), or in /tmp if that is no folder, or
// if the path, which is an absolute one, would be longer than `longest`. Whoever asked removes it:
// a Guardian, say. Those of this name, there and of this user, that were left because their
// Guardian was killed as well are removed before. Error: kCannotWrite.
Result<std::filesystem::path> make_temporary_folder(
    const std::string& name, std::size_t longest = std::numeric_limits<std::size_t>::max());

}  // namespace speedo
