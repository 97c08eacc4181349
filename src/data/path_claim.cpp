#include "data/path_claim.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/whole_path.hpp"

namespace speedo {

Result<PathClaim> PathClaim::take(std::shared_ptr<OpenPaths> open,
                                  const std::filesystem::path& path) {
  std::filesystem::path whole = whole_path(path);
  const std::lock_guard lock(open->mutex);
  if (!open->paths.insert(whole).second) {
    return Error{
        ErrorCode::kConfig,
        fmt::format("'{}' is written by another layer; give it another name", path.string())};
  }
  return PathClaim(std::move(open), std::move(whole));
}

PathClaim::PathClaim(std::shared_ptr<OpenPaths> open, std::filesystem::path path)
    : open_(std::move(open)), path_(std::move(path)) {}

PathClaim::~PathClaim() {
  if (!open_) return;
  const std::lock_guard lock(open_->mutex);
  open_->paths.erase(path_);
}

}  // namespace speedo
