#include "base/patient_read.hpp"

#include <cerrno>

#include <poll.h>
#include <unistd.h>

namespace speedo {
namespace {

constexpr int kStoppedPollMs = 100;

// A pipe that nobody has opened for writing yet is as if empty to poll(), and at its end to read().
bool await_input(int descriptor, const std::function<bool()>& stopped) {
  while (true) {
    struct pollfd wait {descriptor, POLLIN, 0};
    const int ready = ::poll(&wait, 1, kStoppedPollMs);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (stopped && stopped()) {
      errno = ECANCELED;
      return false;
    }
  }
}

}  // namespace

ssize_t read_patiently(int descriptor, std::span<char> memory,
                       const std::function<bool()>& stopped) {
  std::size_t size = 0;
  while (size < memory.size()) {
    if (!await_input(descriptor, stopped)) return -1;
    const ssize_t got = ::read(descriptor, memory.data() + size, memory.size() - size);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(size);
}

}  // namespace speedo
