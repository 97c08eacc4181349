#include "local/temporary_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "base/log.hpp"
#include "base/temporary_place.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

constexpr char kDrawn[] = "-XXXXXX";
constexpr int kFolderAttemptsMax = 10;

bool lock(int file) { return ::flock(file, LOCK_EX | LOCK_NB) == 0; }

// Locked for as long as this process, and what it forks and does not execute, lives.
bool lock_folder(const fs::path& folder) {
  Descriptor file(
      ::open((folder / kFolderInUse).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  struct stat made {};
  // Whoever removes what is left may have come before the lock.
  if (file.get() < 0 || !lock(file.get()) || ::fstat(file.get(), &made) != 0) return false;
  if (made.st_nlink == 0) return false;
  file.release();
  return true;
}

bool is_ours(const fs::path& folder) {
  struct stat found {};
  return ::lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
         found.st_uid == ::geteuid();
}

// What cannot be removed stays: it harms nobody.
void remove_if_left(const fs::path& folder) {
  if (!is_ours(folder)) return;
  const Descriptor file(
      ::open((folder / kFolderInUse).c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (file.get() < 0 || !lock(file.get())) return;
  std::error_code code;
  fs::remove_all(folder, code);
}

void remove_left(const fs::path& parent, const std::string& name) {
  std::error_code code;
  for (fs::directory_iterator entry(parent, code), end; !code && entry != end;
       entry.increment(code)) {
    const std::string found = entry->path().filename().string();
    const bool is_so_named =
        found.size() == name.size() + sizeof(kDrawn) - 1 && found.starts_with(name + '-');
    if (is_so_named) remove_if_left(entry->path());
  }
}

}  // namespace

Result<fs::path> make_temporary_folder(const std::string& name, std::size_t longest) {
  std::error_code code;
  const auto place = temporary_place();
  if (!place) SPEEDO_WARN("{}; {} is used", place.error().message, kTemporaryPlace);
  fs::path parent = place ? *place : fs::path(kTemporaryPlace);
  if ((parent / (name + kDrawn)).string().size() > longest) parent = kTemporaryPlace;
  remove_left(parent, name);
  const std::string drawn = (parent / (name + kDrawn)).string();
  for (int attempt = 1;; ++attempt) {
    std::string pattern = drawn;
    const bool is_made = ::mkdtemp(pattern.data()) != nullptr;
    if (is_made && lock_folder(pattern)) return fs::path(pattern);
    const int reason = errno;
    if (is_made) fs::remove_all(pattern, code);
    if (!is_made || attempt == kFolderAttemptsMax) {
      return Error{ErrorCode::kCannotWrite, "cannot make the temporary folder '" + drawn +
                                                "': " + std::strerror(reason)};
    }
  }
}

}  // namespace speedo
