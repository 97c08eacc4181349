#include "sandbox/helper_starter.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include <speedo/base/thread_name.hpp>

#include "base/descriptor.hpp"
#include "sandbox/helper_start.hpp"

namespace speedo {

namespace {

// Its list of things to do frees itself.
class SpawnFiles {
 public:
  SpawnFiles() { ::posix_spawn_file_actions_init(&actions_); }
  ~SpawnFiles() { ::posix_spawn_file_actions_destroy(&actions_); }
  SpawnFiles(const SpawnFiles&) = delete;
  SpawnFiles& operator=(const SpawnFiles&) = delete;

  // Nothing that a stranger's file made of the helper is to reach a terminal.
  void be_silent() {
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDWR, 0);
    copy(STDIN_FILENO, STDOUT_FILENO);
#ifndef SPEEDO_SANITIZED
    copy(STDIN_FILENO, STDERR_FILENO);
#endif
  }
  void copy(int from, int to) { ::posix_spawn_file_actions_adddup2(&actions_, from, to); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

class SpawnSignals {
 public:
  SpawnSignals() {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSignals() { ::posix_spawnattr_destroy(&attributes_); }
  SpawnSignals(const SpawnSignals&) = delete;
  SpawnSignals& operator=(const SpawnSignals&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

// Of our variables only those that find libraries: passwords may be among the others.
std::vector<char*> environment() {
  std::vector<char*> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    bool wanted = text.starts_with("LD_LIBRARY_PATH=");
#ifdef SPEEDO_SANITIZED
    wanted = wanted || text.find("SAN_OPTIONS=") != std::string_view::npos;
#endif
    if (wanted) kept.push_back(*entry);
  }
  kept.push_back(nullptr);
  return kept;
}

// Above the numbers that the helper gets, so that none is overwritten before it is copied.
Descriptor moved_up(int file) {
  constexpr int kAbove = 16;
  return Descriptor(::fcntl(file, F_DUPFD_CLOEXEC, kAbove));
}

Error cannot_start(const std::filesystem::path& program, int reason) {
  return {reason == ENOENT ? ErrorCode::kNotFound : ErrorCode::kUnavailable,
          "cannot start '" + program.string() + "': " + std::strerror(reason)};
}

Result<pid_t> spawn(const HelperLaunch& launch) {
  const Descriptor socket = moved_up(launch.socket), window = moved_up(launch.window);
  if (socket.get() < 0 || window.get() < 0) return cannot_start(launch.program, errno);
  SpawnFiles files;
  files.be_silent();
  files.copy(socket.get(), kHelperSocket);
  files.copy(window.get(), kHelperWindow);
  const SpawnSignals signals;
  std::string words[1 + kHelperArguments] = {launch.program.string(), std::to_string(::getpid()),
                                             std::to_string(launch.memory_bytes),
                                             std::to_string(launch.window_bytes)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<char*> variables = environment();
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, launch.program.c_str(), files.get(), signals.get(),
                                   arguments.data(), variables.data());
  if (failed != 0) return cannot_start(launch.program, failed);
  return pid;
}

}  // namespace

HelperStarter::~HelperStarter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<pid_t> HelperStarter::start(const HelperLaunch& launch) {
  const std::lock_guard turn(turn_);
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  std::unique_lock lock(mutex_);
  asked_ = &launch;
  started_.reset();
  changed_.notify_all();
  changed_.wait(lock, [this] { return started_.has_value(); });
  return *std::move(started_);
}

void HelperStarter::run() {
  name_thread("helpers");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || asked_ != nullptr; });
    if (stopping_) return;
    started_ = spawn(*std::exchange(asked_, nullptr));
    changed_.notify_all();
  }
}

}  // namespace speedo
