#pragma once

#include <filesystem>

#include <speedo/base/result.hpp>

namespace speedo {

// A database that is a folder, about to be written.
struct FolderTarget {
  std::filesystem::path path;
  const char* kind = "";                                         // "an LMDB"
  bool (*is_ours)(const std::filesystem::path& file) = nullptr;  // whether it is a file of one
};

// With force, the folder must be a database and nothing else, which is known before work begins.
// Error: kCannotWrite.
Result<void> check_target(const FolderTarget& target, bool force);

// Takes away a database, and only that: a folder with anything else in it stays. Error:
// kCannotWrite.
Result<void> remove_old(const FolderTarget& target);

}  // namespace speedo
