#include <cstdint>

#include <unistd.h>
#include <CLI/CLI.hpp>

#include "actors/node.hpp"
#include "base/log.hpp"
#include "main/command_line.hpp"
#include "main/console.hpp"
#include "main/flag_values.hpp"
#include "main/later_flags.hpp"
#include "main/node_programs.hpp"
#include "main/parts.hpp"
#include "main/signals.hpp"

namespace speedo {

namespace {

// Each worker has threads and a net of its own.
constexpr std::int64_t kWorkersPerProcessMax = 256;

struct WorkerFlags {
  std::string master, redis, host, device = "cpu";
  std::uint64_t count = 1;
  std::uint16_t port = 0;
  int compute_nice = 0;
  std::int64_t connect_timeout_s = 0;
  bool debug = false;
};

void add_flags(CLI::App& app, WorkerFlags& flags) {
  const char* group = "Cluster";
  takes(app.add_option("--master", flags.master,
                       "HOST:PORT, speedo://HOST:PORT or akka.tcp://SpeeDO@HOST:PORT/user/host"),
        "ADDRESS")
      ->required()
      ->group(group);
  takes_range(
      app.add_option("--workers,--worker", flags.count, "Workers in this process (default 1)"), 1,
      kWorkersPerProcessMax)
      ->group(group);
  takes(app.add_option("--redis", flags.redis,
                       "Redis server to use, if not the one the master names"),
        "ADDRESS")
      ->group(group);
  takes_count(app.add_option("--connect-timeout", flags.connect_timeout_s,
                             "Give up when no master was reached for so many seconds; 0: never "
                             "(default)"),
              0)
      ->group(group);
  takes(app.add_option("--host", flags.host, "Name of this host in the master's log"), "NAME")
      ->group(group);
  takes_port(app.add_option("--port", flags.port, "SpeeDO's flag: a worker here opens no port"))
      ->group(group);
  takes_range(app.add_option("--compute-nice", flags.compute_nice,
                             "Lower the priority of the compute threads by so much, so that the "
                             "exchange is not kept waiting (default 0)"),
              0, kComputeNiceMax)
      ->group("Other");
  takes(app.add_option("--device", flags.device, "cpu"), "WORD")->group("Other");
  app.add_flag("--debug", flags.debug, "Log more")->group("Other");
  app.footer(
      "The worker waits for its master, and connects again when it was away. The job comes from "
      "the\n"
      "master; only the data must lie here, at the paths that the net names.\n"
      "SIGINT or SIGTERM: leave; the second one ends at once.\n\n"
      "Example:\n"
      "  speedo-worker --master speedo://10.0.0.1:56126");
}

std::string host_name() {
  char name[256] = "";
  if (::gethostname(name, sizeof(name) - 1) != 0) return "worker";
  return name;
}

}  // namespace

Result<void> worker_program(const std::vector<std::string>& arguments) {
  CLI::App app("Worker of a SpeeDO cluster: trains what its master says", "speedo-worker");
  WorkerFlags flags;
  add_flags(app, flags);
  SPEEDO_TRY(refuse_later_flags(arguments));
  SPEEDO_ASSIGN(const Parsed parsed, parse(app, arguments));
  if (parsed == Parsed::kDone) return {};
  if (flags.device != "cpu") {
    return Error{ErrorCode::kUsage, "--device " + flags.device + ": only cpu is built so far"};
  }
  SPEEDO_TRY(parse_address(flags.master));

  set_up_console(flags.debug);
  install_signal_handlers(SignalEffect::kSnapshotAndStop, SignalEffect::kSnapshotAndStop);
  if (flags.port != 0) SPEEDO_INFO("--port {}: not needed, a worker opens no port", flags.port);
  const auto pid = static_cast<std::uint64_t>(::getpid());
  WorkerOptions options;
  options.master = flags.master;
  options.store_override = flags.redis;
  options.count = flags.count;
  options.name_prefix = (flags.host.empty() ? host_name() : flags.host) + "/" + std::to_string(pid);
  options.session.device = flags.device;
  options.session.seed = pid;
  options.session.connect_timeout = std::chrono::seconds(flags.connect_timeout_s);
  return run_worker(options, {stop_requested}, trainer_parts(flags.compute_nice), open_store);
}

}  // namespace speedo
