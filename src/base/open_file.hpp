#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include <speedo/base/result.hpp>

#include "base/descriptor.hpp"

namespace speedo {

// All of a file that is open for reading, from where it stands; `path` is its name in errors.
// Errors: kData if it is no regular file, cannot be read, or is longer than `bytes_max`.
Result<std::string> read_open_file(const Descriptor& file, const std::filesystem::path& path,
                                   std::size_t bytes_max);

// The whole file, wherever it lies: one that this program writes for itself, or that says how it
// works, as a cache's records and ~/.aws/config. What a net, or whoever sent it, may name is read
// by read_file(), within the process's roots. Errors: as read_file().
Result<std::string> read_unconfined_file(const std::filesystem::path& path, std::size_t bytes_max);

}  // namespace speedo
