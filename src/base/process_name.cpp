#include "base/process_name.hpp"

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "base/parse_number.hpp"

namespace speedo {
namespace {

std::string first_word(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string word;
  stream >> word;
  return word;
}

// What numbers processes: containers on one machine have numbers of their own.
std::string pid_namespace() {
  std::error_code none;
  std::string link = std::filesystem::read_symlink("/proc/self/ns/pid", none).string();
  std::erase_if(link, [](char c) { return c < '0' || c > '9'; });
  return link;
}

struct ProcessState {
  char state = '?';
  std::string start;  // in clock ticks since the machine's start
};

// Nothing if there is no such process.
std::optional<ProcessState> find_process(long pid) {
  std::ifstream stream(fmt::format("/proc/{}/stat", pid));
  std::string text;
  if (!std::getline(stream, text)) return std::nullopt;
  // The second field is the program's name in brackets, with any characters.
  const std::size_t bracket = text.rfind(')');
  if (bracket == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(bracket + 1));
  ProcessState found;
  fields >> found.state;
  constexpr int kFieldsToStart = 19;
  for (int i = 0; i < kFieldsToStart; ++i) fields >> found.start;
  return found;
}

// What follows the start time: the place where the number means something.
std::string place() {
  return fmt::format("{}/{}", pid_namespace(), first_word("/proc/sys/kernel/random/boot_id"));
}

}  // namespace

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "localhost";
}

std::string process_name() {
  const long pid = ::getpid();
  const auto self = find_process(pid);
  return fmt::format("{}/{} {} {}", host_name(), pid, self ? self->start : "0", place());
}

bool is_known_dead(std::string_view process_name) {
  std::istringstream words{std::string(process_name)};
  std::string who, start, where;
  words >> who >> start >> where;
  const std::size_t slash = who.rfind('/');
  if (slash == std::string::npos || who.substr(0, slash) != host_name() || where != place()) {
    return false;
  }
  const auto pid = parse_number<long>(std::string_view(who).substr(slash + 1));
  if (!pid || *pid <= 0) return false;
  const auto found = find_process(*pid);
  return !found || found->start != start || found->state == 'Z' || found->state == 'X';
}

std::string_view readable(std::string_view process_name) {
  return process_name.substr(0, process_name.find(' '));
}

}  // namespace speedo
