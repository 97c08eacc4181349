#include "base/patient_output.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

namespace speedo {
namespace {

constexpr std::string_view kEraseLine = "\r\x1b[K";
// A pipe takes so many bytes at once or none, so that lines of several processes stay whole.
constexpr std::size_t kAtOnce = 4096;
// Another thread may have written what this one waits for.
constexpr int kLookMs = 50;

thread_local bool waits_here = true;

// The file of a descriptor, without sharing whether it blocks with other processes. None if it
// cannot be opened: a socket, or another user's terminal.
int open_anew(int descriptor) {
  const std::string name = fmt::format("/proc/self/fd/{}", descriptor);
  return ::open(name.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

// Of -1 none: it waits.
bool takes_bytes(int file, int wait_ms) {
  pollfd each{.fd = file, .events = POLLOUT, .revents = 0};
  return ::poll(&each, 1, wait_ms) == 1;
}

}  // namespace

PatientOutput::~PatientOutput() {
  if (file_ >= 0 && file_ != descriptor_) ::close(file_);
}

void PatientOutput::never_wait_on_this_thread() { waits_here = false; }

void PatientOutput::write(std::string_view line) {
  Lock lock(mutex_);
  if (kept_.size() + line.size() > kKeptMax) take(lock);
  append(line);
  take(lock);
  if (waits_here) wait_until(appended_, kForEver, lock);
}

void PatientOutput::show_live_line(std::string text) {
  Lock lock(mutex_);
  live_line_ = std::move(text);
  take(lock);
  if (!kept_.empty()) return;
  draw_live_line();
  take(lock);
}

bool PatientOutput::flush_within(std::chrono::milliseconds limit) {
  Lock lock(mutex_);
  take(lock);
  if (left_out_ > 0 && kept_.size() < kKeptMax) note_left_out();
  take(lock);
  return wait_until(appended_, limit, lock);
}

void PatientOutput::append(std::string_view line) {
  if (!kept_.empty() && kept_.size() + line.size() > kKeptMax) {
    left_out_ += static_cast<std::uint64_t>(std::ranges::count(line, '\n'));
    return;
  }
  if (left_out_ > 0) note_left_out();
  erase_live_line();
  keep(line);
  if (!live_line_.empty()) draw_live_line();
}

void PatientOutput::keep(std::string_view text) {
  kept_ += text;
  appended_ += text.size();
}

void PatientOutput::note_left_out() {
  erase_live_line();
  keep(fmt::format("({} lines are left out here: nobody took them)\n",
                   std::exchange(left_out_, 0)));
}

void PatientOutput::erase_live_line() {
  if (std::exchange(is_drawn_, false)) keep(kEraseLine);
}

void PatientOutput::draw_live_line() {
  erase_live_line();
  keep(live_line_);
  is_drawn_ = !live_line_.empty();
}

// Whether all was taken of what had been appended by then.
bool PatientOutput::wait_until(std::uint64_t end, std::chrono::milliseconds limit, Lock& lock) {
  const auto start = std::chrono::steady_clock::now();
  auto since = start;
  while (taken_ < end && !is_stuck_) {
    const std::uint64_t before = taken_;
    const int file = is_writing_ ? -1 : file_;
    lock.unlock();
    takes_bytes(file, kLookMs);
    lock.lock();
    take(lock);
    const auto now = std::chrono::steady_clock::now();
    if (taken_ != before) {
      since = now;
    } else if (now - since >= patience_) {
      is_stuck_ = true;
    }
    if (now - start >= limit) break;
  }
  return taken_ >= end;
}

void PatientOutput::take(Lock& lock) {
  follow();
  while (!kept_.empty() && take_some(lock)) is_stuck_ = false;
}

// False: it takes no more at the moment.
bool PatientOutput::take_some(Lock& lock) {
  if (may_block_ && (is_writing_ || !waits_here || !takes_bytes(file_, 0))) return false;
  std::size_t size = std::min(kept_.size(), kAtOnce);
  const std::size_t line_end = std::string_view(kept_).substr(0, size).rfind('\n');
  if (kept_.size() > size && line_end != std::string_view::npos) size = line_end + 1;
  const ssize_t written = write_some(kept_.substr(0, size), lock);
  if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  if (written < 0 && errno == EINTR) return true;
  const std::size_t gone = written > 0 ? static_cast<std::size_t>(written) : kept_.size();
  kept_.erase(0, gone);
  taken_ += gone;
  return true;
}

// Nobody waits for a lock whose owner waits for a reader.
ssize_t PatientOutput::write_some(std::string_view bytes, Lock& lock) {
  if (is_socket_) {
    return ::send(file_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  if (!may_block_) return ::write(file_, bytes.data(), bytes.size());
  const int file = file_;
  is_writing_ = true;
  lock.unlock();
  const ssize_t written = ::write(file, bytes.data(), bytes.size());
  const int error = errno;
  lock.lock();
  is_writing_ = false;
  errno = error;
  return written;
}

// Finds out which file the descriptor is, if it became another one.
void PatientOutput::follow() {
  if (is_writing_) return;
  struct stat found {};
  const bool is_open = ::fstat(descriptor_, &found) == 0;
  if (file_ >= 0 && is_open && found.st_dev == device_ && found.st_ino == inode_) return;
  if (file_ >= 0 && file_ != descriptor_) ::close(file_);
  file_ = descriptor_;
  device_ = found.st_dev;
  inode_ = found.st_ino;
  is_socket_ = is_open && S_ISSOCK(found.st_mode);
  may_block_ = false;
  if (!is_open || (!S_ISFIFO(found.st_mode) && !S_ISCHR(found.st_mode))) return;
  const int anew = open_anew(descriptor_);
  may_block_ = anew < 0;
  if (anew >= 0) file_ = anew;
}

PatientOutput& standard_error() {
  static PatientOutput* const output = std::make_unique<PatientOutput>(STDERR_FILENO).release();
  return *output;
}

}  // namespace speedo
