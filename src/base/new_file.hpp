#pragma once

#include <filesystem>
#include <initializer_list>
#include <string_view>

#include <sys/types.h>

#include <speedo/base/result.hpp>

namespace speedo {

// Writes the parts, one after the other, to a file that must not exist: under another name beside
// it, with `mode` from the start (less the process's umask), fsynced, then renamed. So nobody ever
// sees a part of it, and on failure nothing is left. Error: kCannotWrite, naming the path.
Result<void> write_new_file(const std::filesystem::path& path,
                            std::initializer_list<std::string_view> parts, mode_t mode);

}  // namespace speedo
