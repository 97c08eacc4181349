#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "base/descriptor.hpp"

namespace speedo {

// Why a file cannot be opened or read, by errno: kNotFound, kRefused (no permission), else kData.
ErrorCode code_of_file_error(int reason);

// A folder below which files may be opened.
struct Root {
  std::filesystem::path path;  // without symbolic links
  Descriptor folder;
};

// Errors: kNotFound, kRefused, kData (no folder), naming it; kUnsupported: this kernel has no
// openat2, or a sandbox forbids it.
Result<Root> open_root(const std::filesystem::path& path);

// The roots, for people: "'/data', '/home/ann'".
std::string names_of(std::span<const Root> roots);

// Opens what `path` comes to, all symbolic links followed, if that lies in one of the roots; should
// it be moved or replaced meanwhile, it is not opened. -1 and errno otherwise; EXDEV: it lies in
// none, and `real` is where.
int open_beneath(std::span<const Root> roots, const std::filesystem::path& path, int flags,
                 std::filesystem::path& real);

}  // namespace speedo
