#include <cstdio>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/clock.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/base/platform.hpp>

#include "actors/node.hpp"
#include "actors/status_client.hpp"
#include "cli/report/console.hpp"
#include "cli/signals.hpp"
#include "main/commands.hpp"
#include "main/parts.hpp"
#include "main/program_options.hpp"
#include "monitor/status_json.hpp"
#include "monitor/status_screen.hpp"

namespace speedo {
namespace {

void print_json(const JobStatus& status) {
  std::printf("%s\n", status_json(status).c_str());
  std::fflush(stdout);
}

// Until a second has passed, or a signal came.
void wait_for_next() {
  const Instant end = steady_clock().now() + kStatusInterval;
  while (!stop_requested() && steady_clock().now() < end) real_platform().sleep(kTickInterval);
}

// Whoever has reached its last iteration is about to end.
bool is_done(const JobStatus& status) {
  return status.over || status.progress.iteration >= status.max_iteration;
}

// What has answered once may be away for a while: another master may take its place.
Result<int> watch(StatusClient& client, bool json) {
  StatusScreen screen;
  std::optional<JobStatus> last;
  Instant answered_at{0};
  while (!stop_requested()) {
    auto status = client.ask();
    if (stop_requested()) break;
    if (status) {
      last = std::move(*status);
      answered_at = steady_clock().now();
      json ? print_json(*last) : screen.show(*last, last->over ? "The job is over." : "");
      if (last->over) return 0;
    } else if (!last) {
      return status.error();
    } else if (is_done(*last)) {
      if (!json) screen.show(*last, "The job is over.");
      return 0;
    } else if (!json) {
      screen.show(*last, fmt::format("No answer for {:.0f} s: {}", seconds_since(answered_at),
                                     status.error().message));
    }
    wait_for_next();
  }
  return 0;
}

}  // namespace

Result<int> status_command(const CommandLine& line) {
  OptionValues values(Program::kStatus);
  SPEEDO_ASSIGN(const Parsed parsed, read_program_options(line.arguments, values));
  if (parsed == Parsed::kDone) return 0;
  std::string master;
  bool is_watching = false, json = false;
  values.get("master", master);
  values.get("watch", is_watching);
  values.get("json", json);
  const GateFlags gate = gate_flags(values);
  SPEEDO_TRY(check(gate));
  SPEEDO_ASSIGN(const Address address, parse_address(master));
  set_up_console(false);
  install_signal_handlers(SignalEffect::kStop, SignalEffect::kStop);
  SPEEDO_ASSIGN(StatusClient client,
                StatusClient::create(address, gate_files(gate), stop_requested));
  if (is_watching) return watch(client, json);
  SPEEDO_ASSIGN(const JobStatus status, client.ask());
  json ? print_json(status) : print_status(status);
  return 0;
}

}  // namespace speedo
