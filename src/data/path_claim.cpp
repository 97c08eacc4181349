#include "data/path_claim.hpp"

#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace speedo {

Result<PathClaim> PathClaim::take(std::shared_ptr<OpenPaths> open,
                                  const std::filesystem::path& path) {
  std::error_code code;  // of a path that has no absolute form, which then stays as it is
  std::filesystem::path whole = std::filesystem::weakly_canonical(path, code);
  if (code) whole = path;
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
