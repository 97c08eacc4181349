#include <cstdint>

#include <unistd.h>
#include <CLI/CLI.hpp>

#include "actors/node.hpp"
#include "base/log.hpp"
#include "base/process_name.hpp"
#include "cli/flags/cluster_flags.hpp"
#include "cli/command_line.hpp"
#include "cli/flags/compute_flags.hpp"
#include "cli/report/console.hpp"
#include "cli/flags/flag_values.hpp"
#include "cli/grace_period.hpp"
#include "cli/flags/later_flags.hpp"
#include "cli/flags/log_flags.hpp"
#include "cli/password_source.hpp"
#include "cli/signals.hpp"
#include "cli/flags/speedo_flags.hpp"
#include "local/core_shares.hpp"
#include "main/node_programs.hpp"
#include "main/parts.hpp"
#include "measure/memory_guard.hpp"

namespace speedo {

namespace {

// Each worker has threads and a net of its own.
constexpr std::int64_t kWorkersPerProcessMax = 256;

// A worker whose job is over, and who cannot learn it, does not look for its master for ever.
constexpr std::int64_t kConnectTimeoutDefault = 600;

struct WorkerFlags {
  std::string master, redis, redis_password_file, host, device = "cpu";
  std::uint64_t count = 1;
  std::uint16_t port = 0;
  int compute_nice = 0;
  ComputeFlags compute;
  bool force = false;
  std::int64_t connect_timeout_s = kConnectTimeoutDefault;
  std::int64_t store_timeout_s = kStoreTimeoutDefault, grace_period_s = kGracePeriodDefault;
  LogFlags log;
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
                       "Redis server to use, if not the one the master names; as the master's"),
        "ADDRESS")
      ->group(group);
  add_password_flag(app, flags.redis_password_file);
  takes_count(app.add_option("--connect-timeout", flags.connect_timeout_s,
                             "Give up when no master was reached for so many seconds; 0: never "
                             "(default 600)"),
              0)
      ->group(group);
  add_store_timeout_flag(app, flags.store_timeout_s, group);
  add_grace_period_flag(app, flags.grace_period_s, group);
  takes(app.add_option("--host", flags.host, "Name of this host in the master's log"), "NAME")
      ->group(group);
  takes_port(app.add_option("--port", flags.port, "SpeeDO's flag: a worker here opens no port"))
      ->group(group);
  add_compute_flags(app, flags.compute, ThreadScope::kWorkers);
  add_force_flag(app, flags.force);
  takes_range(app.add_option("--compute-nice", flags.compute_nice,
                             "Lower the priority of the compute threads by so much, so that the "
                             "exchange is not kept waiting (default 0)"),
              0, kComputeNiceMax)
      ->group("Computing");
  takes(app.add_option("--device", flags.device, "cpu"), "WORD")->group("Other");
  add_log_flags(app, flags.log);
  app.footer(
      "The worker waits for its master, and connects again when it was away. The job comes from "
      "the\n"
      "master; only data and mean file must lie here, at the paths that the net names.\n"
      "The master names the Redis server, but not its password: a worker brings its own.\n"
      "SIGINT or SIGTERM: leave; the second one ends at once. SIGHUP, as of a closed terminal,\n"
      "does nothing.\n\n"
      "Examples:\n"
      "  speedo-worker --master speedo://10.0.0.1:56126\n"
      "  speedo-worker --master speedo://10.0.0.1:56126 --redis-password-file redis.password");
}

// Of each worker. They are equal, so that the same workers give the same bits.
Result<ComputeOptions> compute_options(const WorkerFlags& flags) {
  SPEEDO_ASSIGN(ComputeOptions options, settle(flags.compute));
  SPEEDO_TRY(check_thread_count(flags.compute, flags.count));
  options.threads = share_threads(options.threads, flags.count, true).front();
  options.nice = flags.compute_nice;
  return options;
}

}  // namespace

Result<int> worker_program(const std::vector<std::string>& arguments,
                           const ProcessSecrets& secrets) {
  CLI::App app("Worker of a SpeeDO cluster: trains what its master says", "speedo-worker");
  WorkerFlags flags;
  add_flags(app, flags);
  SPEEDO_TRY(refuse_later_flags(arguments));
  SPEEDO_TRY(refuse_speedo_flags(arguments, SpeedoProgram::kWorker));
  SPEEDO_ASSIGN(const Parsed parsed, parse(app, arguments));
  if (parsed == Parsed::kDone) return 0;
  if (flags.device != "cpu") {
    return Error{ErrorCode::kUsage, "--device " + flags.device + ": only cpu is built so far"};
  }
  SPEEDO_TRY(parse_address(flags.master));
  if (!flags.redis.empty()) SPEEDO_TRY(parse_redis_address(flags.redis));

  set_up_console(flags.log);
  install_signal_handlers(SignalEffect::kSnapshotAndStop, SignalEffect::kNone);
  const GracePeriod grace(std::chrono::seconds(flags.grace_period_s), "speedo-worker");
  SPEEDO_ASSIGN(const RedisCredentials credentials,
                redis_credentials(flags.redis_password_file, secrets));
  SPEEDO_ASSIGN(const ComputeOptions compute, compute_options(flags));
  SPEEDO_INFO("{} {}", flags.count > 1 ? "Each worker computes with" : "Computing with",
              describe(compute));
  if (flags.port != 0) SPEEDO_INFO("--port {}: not needed, a worker opens no port", flags.port);
  const auto pid = static_cast<std::uint64_t>(::getpid());
  WorkerOptions options;
  options.master = flags.master;
  options.store_override = StoreAddress(flags.redis);
  options.store_timeout = std::chrono::seconds(flags.store_timeout_s);
  options.count = flags.count;
  options.name_prefix = (flags.host.empty() ? host_name() : flags.host) + "/" + std::to_string(pid);
  options.session.device = flags.device;
  options.session.seed = pid;
  options.session.connect_timeout = std::chrono::seconds(flags.connect_timeout_s);
  TrainerParts parts = trainer_parts(compute);
  parts.admit = make_memory_guard(flags.count, {.force = flags.force});
  auto done = run_worker(options, {stop_requested}, parts, store_opener(credentials));
  SPEEDO_DEBUG("Memory at the peak: {}", format_bytes(peak_resident_bytes()));
  SPEEDO_TRY(done);
  return 0;
}

}  // namespace speedo
