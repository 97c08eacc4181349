#include "local/guardian.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local/temporary_folder.hpp"

namespace speedo {

namespace {

// What the parent says through the pipe; smaller than PIPE_BUF, so it arrives whole.
struct Notice {
  char what = 0;  // 'w' watch, 'f' forget, 'k' keep the folder
  pid_t group = 0;
};

void leave_the_terminal() {
  ::setsid();
  ::prctl(PR_SET_NAME, "speedo-guardian");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
  const int null = ::open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, fd);
  if (null > STDERR_FILENO) ::close(null);
}

void clear_up(const std::filesystem::path& temporary, bool keep) {
  std::error_code code;
  if (keep) {
    std::filesystem::remove(temporary / kFolderInUse, code);
  } else {
    std::filesystem::remove_all(temporary, code);
  }
}

[[noreturn]] void guard(int pipe, const std::filesystem::path& temporary) {
  leave_the_terminal();
  std::set<pid_t> groups;
  bool keep = false;
  Notice notice;
  while (true) {
    const ssize_t got = ::read(pipe, &notice, sizeof(notice));
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof(notice)) break;
    if (notice.what == 'w') groups.insert(notice.group);
    if (notice.what == 'f') groups.erase(notice.group);
    if (notice.what == 'k') keep = true;
  }
  for (const pid_t group : groups) ::kill(-group, SIGKILL);
  clear_up(temporary, keep);
  ::_exit(0);
}

}  // namespace

Result<Guardian> Guardian::create(const std::filesystem::path& temporary) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return Error{ErrorCode::kUnavailable,
                 std::string("cannot make a pipe: ") + std::strerror(errno)};
  }
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[1]);
    guard(ends[0], temporary);
  }
  ::close(ends[0]);
  if (pid < 0) {
    ::close(ends[1]);
    return Error{ErrorCode::kUnavailable, std::string("cannot fork: ") + std::strerror(errno)};
  }
  return Guardian(ends[1], pid, temporary);
}

Guardian::Guardian(Guardian&& other) noexcept
    : pipe_(std::exchange(other.pipe_, -1)), pid_(std::exchange(other.pid_, -1)),
      temporary_(std::move(other.temporary_)), keeps_(other.keeps_) {}

Guardian::~Guardian() {
  if (pipe_ < 0) return;
  ::close(pipe_);
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
  }
  if (ended == pid_ && WIFSIGNALED(status)) clear_up(temporary_, keeps_);
}

void Guardian::watch(pid_t group) { tell('w', group); }
void Guardian::forget(pid_t group) { tell('f', group); }
void Guardian::keep_folder() {
  keeps_ = true;
  tell('k', 0);
}

void Guardian::tell(char what, pid_t group) {
  const Notice notice{what, group};
  // A guardian that somebody killed cannot be told; its work is then the destructor's of Children.
  if (::write(pipe_, &notice, sizeof(notice)) < 0) return;
}

}  // namespace speedo
