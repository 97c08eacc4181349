#include "base/process_name.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include <signal.h>
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

// The number of this process' namespace; empty where the system does not tell.
std::string own_namespace(const char* kind) {
  std::error_code none;
  std::string link =
      std::filesystem::read_symlink(fmt::format("/proc/self/ns/{}", kind), none).string();
  std::erase_if(link, [](char c) { return c < '0' || c > '9'; });
  return link;
}

struct ProcessState {
  long pid = 0;
  char state = '?';
  std::string start;  // in clock ticks since the machine's start
};

// `process`: a number, or "self". Nothing if /proc does not show it: it may live all the same, as
// another user's does under hidepid.
std::optional<ProcessState> shown_process(const std::string& process) {
  std::ifstream stream(fmt::format("/proc/{}/stat", process));
  std::string text;
  if (!std::getline(stream, text)) return std::nullopt;
  // The second field is the program's name in brackets, with any characters.
  const std::size_t bracket = text.rfind(')');
  if (bracket == std::string::npos) return std::nullopt;
  ProcessState found;
  std::istringstream(text) >> found.pid;
  std::istringstream fields(text.substr(bracket + 1));
  fields >> found.state;
  constexpr int kFieldsToStart = 19;
  for (int i = 0; i < kFieldsToStart; ++i) fields >> found.start;
  if (!fields) return std::nullopt;
  return found;
}

// Nothing where /proc is not mounted, or numbers processes as another PID namespace does.
std::optional<ProcessState> shown_self() {
  auto self = shown_process("self");
  if (!self || self->pid != ::getpid()) return std::nullopt;
  return self;
}

// What follows the start time: where the number and that time mean something. Containers on one
// machine number processes on their own, and those in time namespaces count from starts of their
// own. Nothing where the system does not tell.
std::optional<std::string> place() {
  const std::string numbers = own_namespace("pid");
  const std::string boot = first_word("/proc/sys/kernel/random/boot_id");
  if (numbers.empty() || boot.empty() || !shown_self()) return std::nullopt;
  return fmt::format("{}-{}/{}", numbers, own_namespace("time"), boot);
}

}  // namespace

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "localhost";
}

std::string process_name() {
  const auto self = shown_self();
  return fmt::format("{}/{} {} {}", host_name(), ::getpid(), self ? self->start : "0",
                     place().value_or("?"));
}

bool is_known_dead(std::string_view process_name) {
  std::istringstream words{std::string(process_name)};
  std::string who, start, where;
  words >> who >> start >> where;
  const std::size_t slash = who.rfind('/');
  const auto here = place();
  if (slash == std::string::npos || who.substr(0, slash) != host_name() || !here ||
      where != *here) {
    return false;
  }
  const auto pid = parse_number<pid_t>(std::string_view(who).substr(slash + 1));
  if (!pid || *pid <= 0) return false;
  const auto found = shown_process(std::to_string(*pid));
  // The kernel tells of processes that /proc hides, if only that it forbids the signal.
  if (!found) return ::kill(*pid, 0) != 0 && errno == ESRCH;
  return found->start != start || found->state == 'Z' || found->state == 'X';
}

std::string_view readable(std::string_view process_name) {
  return process_name.substr(0, process_name.find(' '));
}

}  // namespace speedo
