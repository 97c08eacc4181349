#pragma once

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

namespace speedo::test {

// The children of `parent` that bear this name, zombies among them.
inline std::vector<pid_t> children_of(pid_t parent, const std::string& name) {
  std::vector<pid_t> found;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", code)) {
    const std::string number = entry.path().filename();
    if (number.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string text;
    if (!std::getline(file, text)) continue;  // gone meanwhile
    // PID (NAME) STATE PARENT ...
    const std::size_t open = text.find('('), close = text.rfind(')');
    if (open == std::string::npos || close == std::string::npos) continue;
    if (text.substr(open + 1, close - open - 1) != name.substr(0, 15)) continue;
    if (std::stoi(text.substr(close + 4)) == parent) found.push_back(std::stoi(text));
  }
  return found;
}

// How many descriptors this process has open.
inline std::size_t open_descriptors() {
  std::error_code code;
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd", code)) {
    ++count;
  }
  return count;
}

}  // namespace speedo::test
