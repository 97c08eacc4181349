#include "support/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace speedo::test {
namespace {

constexpr std::chrono::milliseconds kPoll{5};

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Whether a signal still waits for the process, or for its main thread.
bool is_pending(pid_t id, int number) {
  std::istringstream status(text_of("/proc/" + std::to_string(id) + "/status"));
  for (std::string name; status >> name;) {
    if (name != "SigPnd:" && name != "ShdPnd:") continue;
    unsigned long long signals = 0;
    status >> std::hex >> signals;
    if ((signals >> (number - 1) & 1U) != 0) return true;
  }
  return false;
}

int create(const std::filesystem::path& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

}  // namespace

Process::Process(std::vector<std::string> command, const std::filesystem::path& log,
                 std::vector<std::string> environment)
    : output_(log.string() + ".out"), errors_(log.string() + ".err") {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<char*> variables;
  for (std::string& variable : environment) variables.push_back(variable.data());
  for (char** own = environ; *own != nullptr; ++own) variables.push_back(*own);
  variables.push_back(nullptr);
  const int out = create(output_), err = create(errors_);
  const pid_t parent = ::getpid();
  id_ = ::fork();
  if (id_ < 0) throw std::runtime_error("cannot fork");
  if (id_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    ::execve(arguments[0], arguments.data(), variables.data());
    ::_exit(127);
  }
  ::close(out);
  ::close(err);
}

Process::~Process() {
  if (id_ < 0 || exit_) return;
  ::kill(id_, SIGKILL);
  ::waitpid(id_, nullptr, 0);
}

Process::Process(Process&& other) noexcept
    : id_(std::exchange(other.id_, -1)),
      exit_(other.exit_),
      output_(std::move(other.output_)),
      errors_(std::move(other.errors_)) {}

void Process::signal(int number) const {
  if (!exit_) ::kill(id_, number);
}

void Process::signal_and_wait(int number) {
  signal(number);
  while (running() && is_pending(id_, number)) std::this_thread::sleep_for(kPoll);
}

bool Process::running() {
  if (exit_) return false;
  int status = 0;
  if (::waitpid(id_, &status, WNOHANG) != id_) return true;
  exit_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return false;
}

std::optional<int> Process::wait(std::chrono::milliseconds patience) {
  const auto start = std::chrono::steady_clock::now();
  while (running() && std::chrono::steady_clock::now() - start < patience) {
    std::this_thread::sleep_for(kPoll);
  }
  return exit_;
}

std::string Process::output() const { return text_of(output_); }
std::string Process::errors() const { return text_of(errors_); }

bool Process::says(const std::string& text, std::chrono::milliseconds patience) {
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < patience) {
    const bool last_look = !running();
    if (errors().find(text) != std::string::npos) return true;
    if (last_look) return false;
    std::this_thread::sleep_for(kPoll);
  }
  return false;
}

}  // namespace speedo::test
