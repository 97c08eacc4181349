#pragma once

#include <filesystem>
#include <optional>
#include <system_error>

#include <speedo/base/result.hpp>

namespace speedo {

// A file or folder beside its final name, for what is not complete yet. Its name is drawn at random
// and made in one step that fails if the name exists, be it as a symbolic link: nobody can prepare
// it. It is removed with this object, unless put_in_place() came first.
//
// What a killed process left behind is removed when the next Temporary of the same target is made:
// each is locked (flock) for as long as its process lives, so that one of our names that belongs to
// this user and can be locked is nobody's any more.
class Temporary {
 public:
  // An empty file, open for writing, that has `mode` from the start (less the process's umask). On
  // failure `code` tells why, also that the target is a folder by the slash at its end.
  static std::optional<Temporary> file_beside(
      const std::filesystem::path& target, std::error_code& code,
      std::filesystem::perms mode = std::filesystem::perms{0644});
  // For libraries that write to a path: nothing yet, in a folder that only this user may enter.
  static std::optional<Temporary> path_beside(const std::filesystem::path& target,
                                              std::error_code& code);
  // Removes what killed processes left beside files whose paths begin so.
  static void sweep(const std::filesystem::path& beginning);
  Temporary(Temporary&& other) noexcept;
  Temporary& operator=(Temporary&&) = delete;
  ~Temporary();

  const std::filesystem::path& path() const { return path_; }  // where to write
  int descriptor() const { return descriptor_; }               // of file_beside()'s file

  // fsync alone, after which put_in_place() has little left that could fail. Error: kCannotWrite.
  Result<void> sync() const;
  // fsync, rename, fsync of the folder: at any moment the target is the old one or the new one. The
  // path may be a folder of files, which are synced too; its target must not be a folder that has
  // content. Requires: called once. Error: kCannotWrite.
  Result<void> put_in_place();
  // The same of a file whose target must not exist, and is never replaced.
  Result<void> put_in_new_place();

 private:
  Temporary(std::filesystem::path target, std::filesystem::path made, std::filesystem::path path,
            int descriptor);
  Result<void> placed_by(int (*name)(const char* from, const char* to));
  void discard();

  std::filesystem::path target_;
  std::filesystem::path made_;  // what the destructor removes; empty: nothing
  std::filesystem::path path_;
  int descriptor_;  // holds the lock
};

}  // namespace speedo
