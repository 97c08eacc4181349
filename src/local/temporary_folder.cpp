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

enum class Hold { kHeld, kLost, kFailed };  // kFailed: errno says why

// Holds a new folder for as long as this process, and what it forks and does not execute, lives.
// kLost: whoever removes what is left came before the lock.
Hold hold(const fs::path& folder) {
  const fs::path in_use = folder / kFolderInUse;
  Descriptor file(::open(in_use.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  struct stat made {};
  if (file.get() < 0) return errno == ENOENT ? Hold::kLost : Hold::kFailed;
  if (!lock(file.get())) {
    if (errno == EWOULDBLOCK) return Hold::kLost;
    // Nothing can be locked here. Without the file nobody takes the folder for one that is left.
    return ::unlink(in_use.c_str()) == 0 ? Hold::kHeld : Hold::kFailed;
  }
  if (::fstat(file.get(), &made) != 0) return Hold::kFailed;
  if (made.st_nlink == 0) return Hold::kLost;
  file.release();
  // systemd-tmpfiles, which removes what has grown old, leaves folders alone that are themselves
  // locked.
  Descriptor whole(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (whole.get() >= 0 && lock(whole.get())) whole.release();
  return Hold::kHeld;
}

// Of a folder that could not be held. One that may not be opened can be removed while it is empty.
void remove_made(const fs::path& folder) {
  ::unlink((folder / kFolderInUse).c_str());
  ::rmdir(folder.c_str());
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
  const auto place = temporary_place();
  if (!place) SPEEDO_WARN("{}; {} is used", place.error().message, kTemporaryPlace);
  fs::path parent = place ? *place : fs::path(kTemporaryPlace);
  if ((parent / (name + kDrawn)).string().size() > longest) parent = kTemporaryPlace;
  remove_left(parent, name);
  const std::string drawn = (parent / (name + kDrawn)).string();
  for (int attempt = 1;; ++attempt) {
    std::string pattern = drawn;
    const bool is_made = ::mkdtemp(pattern.data()) != nullptr;
    const Hold held = is_made ? hold(pattern) : Hold::kFailed;
    if (held == Hold::kHeld) return fs::path(pattern);
    const int reason = held == Hold::kLost ? EBUSY : errno;
    if (is_made) remove_made(pattern);
    if (held == Hold::kFailed || attempt == kFolderAttemptsMax) {
      return Error{ErrorCode::kCannotWrite, "cannot make the temporary folder '" + drawn +
                                                "': " + std::strerror(reason)};
    }
  }
}

}  // namespace speedo
