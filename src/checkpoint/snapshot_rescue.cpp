#include "checkpoint/snapshot_rescue.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "base/log.hpp"
#include "base/output_root.hpp"
#include "base/temporary_place.hpp"

namespace speedo {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kNameBytesMax = 64;

void remove_folder(const fs::path& folder) {
  std::error_code code;
  fs::remove_all(folder, code);
  if (code) SPEEDO_WARN("'{}' cannot be removed: {}", folder.string(), code.message());
}

Result<fs::path> make_folder() {
  const auto place = temporary_place();
  std::string pattern =
      ((place ? *place : fs::path(kTemporaryPlace)) / "speedo-rescue-XXXXXX").string();
  if (::mkdtemp(pattern.data()) != nullptr) return fs::path(pattern);
  return Error{ErrorCode::kCannotWrite,
               "cannot make the folder '" + pattern + "': " + std::strerror(errno)};
}

}  // namespace

// What is too long in one place may be so in another.
SnapshotRescue::SnapshotRescue(const fs::path& prefix)
    : name_(prefix.filename().string().size() > kNameBytesMax ? fs::path("snapshot")
                                                              : prefix.filename()) {}

Result<void> SnapshotRescue::write(
    const std::function<Result<void>()>& write,
    const std::function<Result<void>(const std::string& prefix)>& write_to) {
  Result<void> written = write();
  if (written) forget();
  if (written || written.error().code != ErrorCode::kCannotWrite) return written;
  Error error = std::move(written).error();
  const Result<void> saved = save(write_to);
  if (saved) {
    error.message += "; it is in '" + folder_.string() + "' instead";
  } else {
    error.message += "; nor elsewhere: " + saved.error().message;
    if (!folder_.empty()) error.message += "; an earlier one is in '" + folder_.string() + "'";
  }
  return error;
}

// The one before stays until this one is whole.
Result<void> SnapshotRescue::save(
    const std::function<Result<void>(const std::string& prefix)>& write_to) {
  SPEEDO_ASSIGN(const fs::path folder, make_folder());
  const OwnOutputFolder own(folder);
  if (auto written = write_to((folder / name_).string()); !written) {
    remove_folder(folder);
    return written;
  }
  forget();
  folder_ = folder;
  return {};
}

void SnapshotRescue::forget() {
  if (!folder_.empty()) remove_folder(folder_);
  folder_.clear();
}

}  // namespace speedo
