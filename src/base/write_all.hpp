#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>

namespace speedo {

// Writes all of the bytes, however often a signal interrupts it. False, with errno set, if they
// cannot be written.
inline bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace speedo
