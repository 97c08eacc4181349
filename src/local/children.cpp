#include "local/children.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/clock.hpp>

namespace speedo {

namespace {

// All that the child needs after fork(), made before it: memory must not be allocated in between.
struct Launch {
  std::vector<std::string> environment_texts;
  std::vector<char*> arguments, environment;
  int input = -1, output = -1, result = -1;
  int report = -1;  // errno of a failed exec goes here
  Guardian* guardian = nullptr;
  pid_t parent = 0;
  std::optional<cpu_set_t> processors;
};

std::optional<cpu_set_t> set_of(const std::vector<int>& processors) {
  if (processors.empty()) return std::nullopt;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(processor, &set);
  return set;
}

std::vector<std::string> environment_texts(const ChildCommand& command) {
  std::vector<std::string> texts;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : command.environment) {
      replaced = replaced || text.starts_with(name + "=");
    }
    if (!replaced) texts.push_back(text);
  }
  for (const auto& [name, value] : command.environment) texts.push_back(name + "=" + value);
  return texts;
}

[[noreturn]] void become(const Launch& launch) {
  ::setpgid(0, 0);
  // The parent may have died before the death signal was set.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launch.parent) ::_exit(128 + SIGKILL);
  // Told by the child: what it starts must be watched although the parent dies in this moment.
  launch.guardian->watch(::getpid());
  if (launch.processors) {
    ::sched_setaffinity(0, sizeof(*launch.processors), &*launch.processors);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ, SIGCHLD}) {
    ::signal(signal, SIG_DFL);
  }
  // To a terminal that stops whom it does not belong to (stty tostop) it writes for its parent.
  ::signal(SIGTTOU, SIG_IGN);
  const int input = launch.input >= 0 ? launch.input : ::open("/dev/null", O_RDONLY);
  ::dup2(input, STDIN_FILENO);
  if (launch.output >= 0) {
    ::dup2(launch.output, STDOUT_FILENO);
    ::dup2(launch.output, STDERR_FILENO);
  }
  if (launch.result >= 0) ::dup2(launch.result, STDOUT_FILENO);
  ::execvpe(launch.arguments[0], launch.arguments.data(), launch.environment.data());
  const int reason = errno;
  if (::write(launch.report, &reason, sizeof(reason)) < 0) ::_exit(126);
  ::_exit(127);
}

// Opens a file to write for a child; -1 for no file.
Result<int> open_for_child(const std::filesystem::path& path) {
  if (path.empty()) return -1;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file >= 0) return file;
  return Error{ErrorCode::kCannotWrite,
               "cannot write '" + path.string() + "': " + std::strerror(errno)};
}

// A pipe with the lines in it: its ends. Requires: they fit into a pipe.
struct InputPipe {
  int reads = -1, writes = -1;
};
Result<InputPipe> make_input(const std::vector<Secret>& lines) {
  InputPipe made;
  if (lines.empty()) return made;
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return Error{ErrorCode::kUnavailable, std::string("no pipe: ") + std::strerror(errno)};
  }
  made = {ends[0], ends[1]};
  for (const Secret& line : lines) {
    const std::string_view text = line.reveal();
    const bool written =
        ::write(made.writes, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
        ::write(made.writes, "\n", 1) == 1;
    SPEEDO_ASSERT(written);
  }
  return made;
}

Error cannot_start(const std::string& program, int reason) {
  if (reason == ENOENT) {
    return {ErrorCode::kNotFound, "program '" + program + "' was not found"};
  }
  return {ErrorCode::kUnavailable, "cannot start '" + program + "': " + std::strerror(reason)};
}

}  // namespace

std::string to_string(const ChildEnd& end) {
  if (end.signal == 0) return "exit code " + std::to_string(end.exit_code);
  const char* name = ::sigabbrev_np(end.signal);
  return name == nullptr ? "signal " + std::to_string(end.signal) : std::string("SIG") + name;
}

Children::Children(Guardian guardian) : guardian_(std::move(guardian)) {
  // wait() takes SIGCHLD synchronously.
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child, nullptr);
}

Children::~Children() {
  // Where a process may not lead a group, there is none of its number.
  for (const auto& [pid, child] : running_) {
    if (::kill(-pid, SIGKILL) != 0) ::kill(pid, SIGKILL);
  }
  while (!running_.empty()) {
    const pid_t pid = running_.begin()->first;
    if (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
    forget(pid);
  }
}

void Children::forget(pid_t pid) {
  guardian_.forget(pid);
  close_input(pid);
  running_.erase(pid);
}

void Children::close_input(pid_t pid) {
  const auto found = running_.find(pid);
  if (found == running_.end() || found->second.input < 0) return;
  ::close(std::exchange(found->second.input, -1));
}

Result<pid_t> Children::start(const ChildCommand& command) {
  Launch launch;
  launch.environment_texts = environment_texts(command);
  for (std::string& text : launch.environment_texts) launch.environment.push_back(text.data());
  launch.environment.push_back(nullptr);
  for (const std::string& argument : command.arguments) {
    launch.arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  launch.arguments.push_back(nullptr);
  SPEEDO_ASSIGN(launch.output, open_for_child(command.output));
  SPEEDO_ASSIGN(launch.result, open_for_child(command.result));
  int report[2] = {-1, -1};
  if (::pipe2(report, O_CLOEXEC) != 0) return cannot_start(command.arguments[0], errno);
  launch.report = report[1];
  launch.parent = ::getpid();
  launch.guardian = &guardian_;
  launch.processors = set_of(command.processors);
  SPEEDO_ASSIGN(const InputPipe input, make_input(command.input));
  launch.input = input.reads;
  const pid_t pid = ::fork();
  if (pid == 0) become(launch);
  const int fork_errno = errno;
  ::close(report[1]);
  if (launch.output >= 0) ::close(launch.output);
  if (launch.result >= 0) ::close(launch.result);
  if (launch.input >= 0) ::close(launch.input);
  int reason = 0;
  const ssize_t got = pid < 0 ? 0 : ::read(report[0], &reason, sizeof(reason));
  ::close(report[0]);
  if ((pid < 0 || got == sizeof(reason)) && input.writes >= 0) ::close(input.writes);
  if (pid < 0) return cannot_start(command.arguments[0], fork_errno);
  if (got == sizeof(reason)) {
    ::waitpid(pid, nullptr, 0);
    guardian_.forget(pid);
    return cannot_start(command.arguments[0], reason);
  }
  running_[pid] = {command.arguments[0], input.writes};
  return pid;
}

std::optional<ChildEnd> Children::reap() {
  int status = 0;
  rusage usage{};
  for (const auto& [pid, child] : running_) {
    if (::wait4(pid, &status, WNOHANG, &usage) != pid) continue;
    ChildEnd end{.pid = pid};
    end.peak_memory_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;  // KiB
    if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
    end.exit_code = end.signal != 0 ? 128 + end.signal : WEXITSTATUS(status);
    forget(end.pid);
    return end;
  }
  return std::nullopt;
}

std::optional<ChildEnd> Children::wait(std::chrono::milliseconds patience) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  const Instant deadline = steady_clock().now() + patience;
  while (true) {
    if (auto end = reap()) return end;
    // A SIGCHLD may be left over from a child that was reaped before; then the wait goes on.
    const Instant left = std::max(Instant::zero(), deadline - steady_clock().now());
    const timespec time{left.count() / 1000000000, left.count() % 1000000000};
    if (::sigtimedwait(&child, nullptr, &time) < 0) return reap();
  }
}

void Children::send(pid_t pid, int signal) {
  if (is_running(pid)) ::kill(pid, signal);
}

}  // namespace speedo
