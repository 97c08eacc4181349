#include "data/atomic_file.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace speedo {

namespace {

bool sync_path(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool synced = ::fsync(fd) == 0;
  ::close(fd);
  return synced;
}

bool sync_tree(const std::filesystem::path& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) {
    for (const auto& entry : std::filesystem::directory_iterator(path, code)) {
      if (!sync_path(entry.path())) return false;
    }
  }
  return sync_path(path);
}

}  // namespace

std::filesystem::path temporary_beside(const std::filesystem::path& path) {
  static std::atomic<unsigned> serial{0};
  return fmt::format("{}.tmp.{}.{}", path.string(), ::getpid(), serial++);
}

Result<void> put_in_place(const std::filesystem::path& temporary,
                          const std::filesystem::path& target) {
  if (!sync_tree(temporary) || ::rename(temporary.c_str(), target.c_str()) != 0) {
    const Error error{ErrorCode::kCannotWrite,
                      fmt::format("cannot write '{}': {}", target.string(), std::strerror(errno))};
    std::error_code code;
    std::filesystem::remove_all(temporary, code);
    return error;
  }
  const std::filesystem::path folder = target.parent_path();
  sync_path(folder.empty() ? "." : folder);
  return {};
}

}  // namespace speedo
