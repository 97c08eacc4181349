#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <set>

#include <speedo/base/result.hpp>

namespace speedo {

// The files that somebody of this process writes.
struct OpenPaths {
  std::mutex mutex;
  std::set<std::filesystem::path> paths;
};

// The right to write a file, for as long as this lives.
class PathClaim {
 public:
  // Error: kConfig if somebody has it.
  static Result<PathClaim> take(std::shared_ptr<OpenPaths> open, const std::filesystem::path& path);
  PathClaim(PathClaim&&) noexcept = default;
  PathClaim& operator=(PathClaim&&) = delete;
  ~PathClaim();

 private:
  PathClaim(std::shared_ptr<OpenPaths> open, std::filesystem::path path);

  std::shared_ptr<OpenPaths> open_;  // null: moved away
  std::filesystem::path path_;
};

}  // namespace speedo
