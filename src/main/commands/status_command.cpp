#include <chrono>
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
#include "gate/gate.hpp"
#include "main/commands.hpp"
#include "main/parts.hpp"
#include "main/program_options.hpp"
#include "monitor/status_json.hpp"
#include "monitor/status_screen.hpp"
#include "train/note_text.hpp"

namespace speedo {
namespace {

// A new master listens by then: it is started again within seconds, or not at all.
constexpr std::chrono::seconds kAwayMax{10};

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

Error gone_error(const Address& master, const JobStatus& last) {
  return {ErrorCode::kUnavailable,
          fmt::format("master {}:{} is gone: nobody has listened there for {} s. The job '{}' was "
                      "last seen at iteration {} of {}, with {}",
                      master.host, master.port, kAwayMax.count(), last.job,
                      last.progress.iteration, last.max_iteration,
                      count_workers(last.progress.workers_alive))};
}

// What has answered once may be away for a while: another master may take its place.
Result<int> watch(StatusClient& client, const Address& master, bool json) {
  StatusScreen screen;
  std::optional<JobStatus> last;
  Instant answered_at{0}, listened_at{0};
  while (!stop_requested()) {
    auto status = client.ask();
    if (stop_requested()) break;
    const Instant now = steady_clock().now();
    if (status || !Gate::found_nobody(status.error())) listened_at = now;
    if (status) {
      last = std::move(*status);
      answered_at = now;
      json ? print_json(*last) : screen.show(*last, last->over ? "The job is over." : "");
      if (last->over) return 0;
    } else if (!last) {
      return status.error();
    } else if (is_done(*last)) {
      if (!json) screen.show(*last, "The job is over.");
      return 0;
    } else if (now - listened_at >= kAwayMax) {
      return gone_error(master, *last);
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
  if (is_watching) return watch(client, address, json);
  SPEEDO_ASSIGN(const JobStatus status, client.ask());
  json ? print_json(status) : print_status(status);
  return 0;
}

}  // namespace speedo
