#include "cli/flags/log_flags.hpp"

#include <CLI/CLI.hpp>

#include "base/log.hpp"
#include "cli/report/console.hpp"
#include "cli/flags/flag_values.hpp"

namespace speedo {

namespace {

constexpr const char* kWithoutYear = "glog";

}  // namespace

void add_log_flags(CLI::App& app, LogFlags& flags) {
  const char* group = "Other";
  app.add_flag("--debug", flags.debug, "Log more")->group(group);
  takes_one_of(app.add_option("--log-format", flags.format,
                              "Date of a log line: glog-0.6, with the year (default), or glog, "
                              "without it, as Caffe's parse_log.py and extract_seconds.py read"),
               {"glog-0.6", kWithoutYear})
      ->group(group);
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
