#pragma once

#include <filesystem>

#include <speedo/base/result.hpp>
#include <speedo/base/temporary.hpp>

namespace speedo {

// A database that is a folder, about to be written.
struct FolderTarget {
  std::filesystem::path path;
  const char* kind = "";                                         // "an LMDB"
  bool (*is_ours)(const std::filesystem::path& file) = nullptr;  // whether it is a file of one
};

// The folder that a user names, with a slash at its end or without, or by a link that leads there.
std::filesystem::path named_folder(const std::filesystem::path& path);

// With force, the folder must be a database and nothing else, which is known before work begins.
// Error: kCannotWrite.
Result<void> check_target(const FolderTarget& target, bool force);

// Where to write what becomes the target. Error: kCannotWrite.
Result<Temporary> folder_beside(const FolderTarget& target);

// With force, takes away a database before, once the new one is on the disk, and only that: a
// folder with anything else in it stays. Error: kCannotWrite.
Result<void> replace_target(const FolderTarget& target, bool force, Temporary& made);

}  // namespace speedo
