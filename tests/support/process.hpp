#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace speedo::test {

// A program of its own, whose output goes to two files. Killed when the object goes, and when the
// test dies.
class Process {
 public:
  // `command`: program and arguments. Output goes to `log`.out and `log`.err. `environment`:
  // NAME=VALUE, added to our own.
  Process(std::vector<std::string> command, const std::filesystem::path& log,
          std::vector<std::string> environment = {});
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;

  pid_t id() const { return id_; }
  void signal(int number) const;
  // The same, and returns once the program has taken it: another one of that number would otherwise
  // be one with it.
  void signal_and_wait(int number);
  bool running();
  // The exit code, or 128 + signal; nothing if it still runs after `patience`.
  std::optional<int> wait(std::chrono::milliseconds patience = std::chrono::seconds{120});

  std::string output() const;  // standard output so far
  std::string errors() const;  // standard error so far
  // Waits until standard error contains `text`.
  bool says(const std::string& text,
            std::chrono::milliseconds patience = std::chrono::seconds{120});

 private:
  pid_t id_ = -1;
  std::optional<int> exit_;
  std::filesystem::path output_, errors_;
};

}  // namespace speedo::test
