#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include <speedo/base/result.hpp>
#include <speedo/base/secret.hpp>

#include "local/guardian.hpp"

namespace speedo {

struct ChildCommand {
  std::vector<std::string> arguments;  // the program first, found in PATH if it has no slash
  std::vector<std::pair<std::string, std::string>> environment;  // added to our own
  std::filesystem::path output;  // for standard output and error; empty: ours
  std::filesystem::path result = {};  // for standard output alone; empty: like the other
  std::vector<int> processors = {};   // that it may run on; empty: ours
  // Lines for its standard input, which stays open until the child or this process ends; none: it
  // reads nothing.
  std::vector<Secret> input = {};
};

// How a child ended.
struct ChildEnd {
  pid_t pid = 0;
  int exit_code = 0;  // 128 + the signal's number if a signal ended it
  int signal = 0;     // 0: it returned of itself
  std::uint64_t peak_memory_bytes = 0;  // resident
};
std::string to_string(const ChildEnd& end);  // "exit code 65", "SIGKILL"

// Child processes that do not outlive this one: each gets the kernel's death signal and is watched
// by the guardian. Each leads its own process group, so Ctrl-C reaches only the parent, which
// decides. Thread safety: one thread, the one that made the object.
class Children {
 public:
  explicit Children(Guardian guardian);
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children();  // kills what still runs

  // Errors: kNotFound if the program does not exist, kUnavailable, kCannotWrite for a file.
  Result<pid_t> start(const ChildCommand& command);
  // The next child that ended, waiting at most this long; a signal to us ends the wait early.
  std::optional<ChildEnd> wait(std::chrono::milliseconds patience);
  void send(pid_t pid, int signal);
  // Ends what it reads. Not an error: it has no input, or has ended.
  void close_input(pid_t pid);
  bool is_running(pid_t pid) const { return running_.contains(pid); }
  Guardian& guardian() { return guardian_; }

 private:
  struct Child {
    std::string program;
    int input = -1;  // the end of its standard input that is ours; -1: none
  };
  std::optional<ChildEnd> reap();
  void forget(pid_t pid);

  Guardian guardian_;
  std::map<pid_t, Child> running_;
};

}  // namespace speedo
