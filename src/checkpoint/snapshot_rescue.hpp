#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include <speedo/base/result.hpp>

namespace speedo {

// Snapshots that cannot be written to their own place (a full disk, a folder that is gone) go to
// one of their own in the folder for temporary files, where the newest is kept until one is written
// to its own place again. Thread safety: one thread at a time.
class SnapshotRescue {
 public:
  // `prefix`: of the snapshots' names, which they keep elsewhere, unless they are long.
  explicit SnapshotRescue(const std::filesystem::path& prefix);

  // What `write` gives. If that is kCannotWrite, the snapshot is written with the prefix that
  // `write_to` gets, and the message says where it is, or why it could not be.
  Result<void> write(const std::function<Result<void>()>& write,
                     const std::function<Result<void>(const std::string& prefix)>& write_to);

 private:
  Result<void> save(const std::function<Result<void>(const std::string& prefix)>& write_to);
  void forget();

  const std::filesystem::path name_;
  std::filesystem::path folder_;  // empty: nothing was rescued
};

}  // namespace speedo
