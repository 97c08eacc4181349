#pragma once

#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include <speedo/base/result.hpp>

namespace speedo {

// The whole file. Errors: kNotFound (with the path), kRefused without permission, kData if it
// cannot be read or is longer than `bytes_max`.
Result<std::string> read_file(const std::filesystem::path& path,
                              std::size_t bytes_max = std::size_t{1} << 34U);

// Writes a temporary file beside `path`, fsyncs it, renames it over `path` and fsyncs the folder:
// at any moment `path` is the old file or the new one. A link stays, and what it leads to is
// written so; a device, a pipe and what /proc names (/dev/stdout) are written into. Error:
// kCannotWrite.
Result<void> write_file_atomically(const std::filesystem::path& path,
                                   std::span<const std::byte> bytes);
Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view text);

// Whether write_file_atomically() can write there, to be asked before long work for it. Error:
// kCannotWrite.
Result<void> check_file_writable(const std::filesystem::path& path);

// Writes the parts, one after the other, to a file that must not exist: at any moment there is the
// whole file with that mode (less the process's umask), or none. Error: kCannotWrite.
Result<void> write_new_file(const std::filesystem::path& path,
                            std::initializer_list<std::string_view> parts,
                            std::filesystem::perms mode);

// Checks, by writing and removing a probe file, that files with this prefix can be written. The
// folder must exist. Error: kCannotWrite, naming the folder and the remedy.
Result<void> check_prefix_writable(const std::string& prefix);

// A path in a prototxt: tried from the working directory, as in Caffe, then from `base` (the folder
// of the prototxt). Returns `path` unchanged if neither exists, so that the error names what the
// user wrote.
std::filesystem::path resolve_path(const std::string& path, const std::filesystem::path& base);

}  // namespace speedo
