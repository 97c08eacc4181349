#include "data/folder_target.hpp"

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <speedo/base/folder.hpp>

namespace speedo {

namespace {

Result<void> remove_old(const FolderTarget& target) {
  std::error_code code;
  if (!std::filesystem::exists(target.path, code)) return {};
  SPEEDO_ASSIGN(const std::vector<std::filesystem::path> files, list_folder(target.path));
  for (const std::filesystem::path& file : files) {
    if (target.is_ours(file)) std::filesystem::remove(file, code);
  }
  if (std::filesystem::remove(target.path, code)) return {};
  return Error{ErrorCode::kCannotWrite,
               fmt::format("'{}' cannot be replaced: {}; remove it yourself", target.path.string(),
                           code.message())};
}

std::filesystem::path without_slash(const std::filesystem::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace

std::filesystem::path named_folder(const std::filesystem::path& path) {
  return without_slash(behind_links(without_slash(path)));
}

Result<void> check_target(const FolderTarget& target, bool force) {
  std::error_code code;
  if (!std::filesystem::exists(target.path, code)) return {};
  if (!force) {
    return Error{
        ErrorCode::kCannotWrite,
        fmt::format("'{}' exists already; remove it or use --force", target.path.string())};
  }
  bool only_ours = std::filesystem::is_directory(target.path, code);
  if (only_ours) {
    SPEEDO_ASSIGN(const std::vector<std::filesystem::path> files, list_folder(target.path));
    only_ours = std::all_of(files.begin(), files.end(), target.is_ours);
  }
  if (only_ours) return {};
  return Error{ErrorCode::kCannotWrite,
               fmt::format("'{}' is not {} folder and is not replaced, even by force",
                           target.path.string(), target.kind)};
}

Result<Temporary> folder_beside(const FolderTarget& target) {
  std::error_code code;
  auto made = Temporary::path_beside(target.path, code);
  if (made) return *std::move(made);
  return Error{ErrorCode::kCannotWrite,
               fmt::format("cannot create folder '{}': {}", target.path.string(), code.message())};
}

Result<void> replace_target(const FolderTarget& target, bool force, Temporary& made) {
  if (force) {
    // Before the old one is gone: a disk may tell as late as this that it has no room.
    SPEEDO_TRY(made.sync());
    SPEEDO_TRY(remove_old(target));
  }
  return made.put_in_place();
}

}  // namespace speedo
