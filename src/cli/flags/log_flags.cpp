#include "cli/flags/log_flags.hpp"

#include "cli/report/console.hpp"

namespace speedo {

namespace {

constexpr const char* kWithoutYear = "glog";

}  // namespace

LogFlags log_flags(const OptionValues& values) {
  LogFlags flags;
  values.get("debug", flags.debug);
  values.get("log-format", flags.format);
  return flags;
}

void set_up_console(const LogFlags& flags) {
  set_up_console(flags.debug,
                 flags.format == kWithoutYear ? LogFormat::kGlog : LogFormat::kGlogWithYear);
}

std::vector<std::string> to_arguments(const LogFlags& flags) {
  std::vector<std::string> arguments = {"--log-format=" + flags.format};
  if (flags.debug) arguments.emplace_back("--debug");
  return arguments;
}

}  // namespace speedo
