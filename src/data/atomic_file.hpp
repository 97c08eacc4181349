#pragma once

#include <filesystem>

#include <speedo/base/result.hpp>

namespace speedo {

// For writers that are libraries of their own and write to a path: they write to the temporary
// name, then put_in_place() makes it the real one.

// A name in the same folder that no other process uses.
std::filesystem::path temporary_beside(const std::filesystem::path& path);

// fsync, rename, fsync of the folder; `temporary` may be a folder of files, which are synced too.
// The target must not be a folder that has content. On error the temporary is removed. Error:
// kCannotWrite.
Result<void> put_in_place(const std::filesystem::path& temporary,
                          const std::filesystem::path& target);

}  // namespace speedo
