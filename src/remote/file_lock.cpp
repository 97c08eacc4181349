#include "remote/file_lock.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

namespace speedo {

namespace {

constexpr mode_t kLockMode = 0600;
constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;

bool is_removed(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 && status.st_nlink == 0;
}

}  // namespace

Error no_cache(const std::filesystem::path& path, const std::string& why) {
  return {ErrorCode::kCannotWrite,
          fmt::format("the cache of remote files cannot be kept in '{}': {}; give another folder "
                      "with --data-cache",
                      path.string(), why)};
}

Result<std::unique_ptr<Descriptor>> lock_file(const std::filesystem::path& path,
                                              const LockPatience& patience) {
  constexpr std::chrono::microseconds kFirstPause{200}, kLongestPause{50000};
  std::chrono::microseconds pause = kFirstPause;
  for (bool waits = false;;) {
    auto lock = std::make_unique<Descriptor>(::open(path.c_str(), kFlags | O_CREAT, kLockMode));
    if (lock->get() < 0) return no_cache(path, std::strerror(errno));
    while (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return no_cache(path, std::strerror(errno));
      if (patience.stopped && patience.stopped()) {
        return Error{ErrorCode::kUnavailable,
                     fmt::format("waiting for '{}' was ended by a signal", path.string())};
      }
      if (!std::exchange(waits, true) && patience.on_waiting) patience.on_waiting();
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, kLongestPause);
    }
    if (!is_removed(lock->get())) return lock;
  }
}

std::unique_ptr<Descriptor> try_lock_file(const std::filesystem::path& path) {
  auto lock = std::make_unique<Descriptor>(::open(path.c_str(), kFlags));
  if (lock->get() < 0 || ::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) return nullptr;
  if (is_removed(lock->get())) return nullptr;
  return lock;
}

}  // namespace speedo
