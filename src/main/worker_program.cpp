#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include <unistd.h>

#include <fmt/format.h>
#include <speedo/base/remote_files.hpp>

#include <speedo/base/folder.hpp>
#include <speedo/store/layout.hpp>

#include "actors/node.hpp"
#include "base/input_roots.hpp"
#include "base/log.hpp"
#include "base/network_interfaces.hpp"
#include "base/parse_number.hpp"
#include "base/process_name.hpp"
#include "base/trace.hpp"
#include "cli/data_map.hpp"
#include "cli/emulated_compute.hpp"
#include "cli/flags/cluster_flags.hpp"
#include "cli/flags/compute_flags.hpp"
#include "cli/flags/gate_flags.hpp"
#include "cli/flags/log_flags.hpp"
#include "cli/flags/redis_tls_flags.hpp"
#include "cli/flags/speedo_flags.hpp"
#include "cli/grace_period.hpp"
#include "cli/net_inputs.hpp"
#include "cli/password_source.hpp"
#include "cli/report/console.hpp"
#include "cli/signals.hpp"
#include "cli/traffic_rate.hpp"
#include "data/parser/parser_processes.hpp"
#include "local/core_shares.hpp"
#include "main/examine.hpp"
#include "main/node_programs.hpp"
#include "main/parts.hpp"
#include "main/program_options.hpp"
#include "main/remote_access.hpp"
#include "measure/memory_guard.hpp"
#include "store/shared/memory_door.hpp"
#include "train/trainer/learner.hpp"

namespace speedo {

namespace {

struct WorkerFlags {
  std::string master, redis, redis_password_file, host, trace;
  bool dry_run = false;
  std::uint64_t count = 0;
  std::uint16_t port = 0;
  int compute_nice = 0;
  bool no_shared_memory = false;
  std::string emulate_compute, shard, max_rate, iface, data_map, data_root;
  ComputeFlags compute;
  bool force = false;
  std::int64_t connect_timeout_s = 0, store_timeout_s = 0, grace_period_s = 0;
  LogFlags log;
  GateFlags gate;
};

// That Redis and the master are reached from; empty: as the system's routes say.
Result<std::string> source_of(const WorkerFlags& flags) {
  if (flags.iface.empty()) return std::string();
  SPEEDO_ASSIGN(const auto all, interface_addresses());
  return choose_address(flags.iface, all);
}

WorkerFlags worker_flags(const OptionValues& values) {
  WorkerFlags flags;
  values.get("master", flags.master);
  values.get("redis", flags.redis);
  values.get("redis-password-file", flags.redis_password_file);
  values.get("max-rate", flags.max_rate);
  values.get("iface", flags.iface);
  values.get("host", flags.host);
  values.get("workers", flags.count);
  values.get("port", flags.port);
  values.get("compute-nice", flags.compute_nice);
  values.get("no-shared-memory", flags.no_shared_memory);
  values.get("emulate-compute", flags.emulate_compute);
  values.get("shard", flags.shard);
  values.get("data-map", flags.data_map);
  values.get("data-root", flags.data_root);
  flags.compute = compute_flags(values);
  values.get("force", flags.force);
  values.get("connect-timeout", flags.connect_timeout_s);
  values.get("store-timeout", flags.store_timeout_s);
  values.get("grace-period", flags.grace_period_s);
  flags.log = log_flags(values);
  flags.gate = gate_flags(values);
  values.get("dry-run", flags.dry_run);
  values.get("trace-file", flags.trace);
  return flags;
}

// Of each worker. They are equal, so that the same workers give the same bits.
Result<ComputeOptions> compute_options(const WorkerFlags& flags) {
  SPEEDO_TRY(check_worker_precision(flags.compute));
  SPEEDO_ASSIGN(ComputeOptions options, settle(flags.compute));
  SPEEDO_TRY(check_thread_count(flags.compute, flags.count));
  options.threads = share_threads(options.threads, flags.count, true).front();
  options.nice = flags.compute_nice;
  return options;
}

void emulate(const EmulatedCompute& compute, TrainerParts& parts, WorkerConfig& session) {
  SPEEDO_WARN("computing is only emulated: the weights of the job will mean nothing");
  parts.make_learner = [parts, compute](const LearnerOptions& options) {
    return make_emulated_learner(parts, compute, options);
  };
  session.device = kEmulatedDevice;
}

std::string own_name(const WorkerFlags& flags) {
  return flags.host.empty() ? host_name() : flags.host;
}

// Each worker of this process reads its own source, from the beginning and alone.
Result<void> map_data(const WorkerFlags& flags, TrainerParts& parts) {
  if (flags.data_map.empty()) return {};
  if (!flags.emulate_compute.empty() || !flags.shard.empty()) {
    return usage_error(
        "--data-map is for workers that read data: leave out --emulate-compute and "
        "--shard, or the map");
  }
  SPEEDO_ASSIGN(const DataMap map, read_data_map(flags.data_map));
  SPEEDO_ASSIGN(const std::string source,
                mapped_source(map, own_name(flags)));
  SPEEDO_INFO("Training data: {}", shown_name(source));
  parts.make_learner = [parts,
                        source](const LearnerOptions& options) -> Result<std::unique_ptr<Learner>> {
    if (!options.job.offset_shards) {
      return config_error(
          "--data-map: the master deals out the batches of one source for all; with --shard offset "
          "it lets each worker read on alone");
    }
    caffe::SolverParameter solver = options.solver;
    SPEEDO_TRY(set_train_source(source, solver));
    return make_net_learner(parts, {options.job, solver, 0.0, options.progress});
  };
  return {};
}

// Adds what the map gives this worker; of files, where they and those beside them lie.
Result<void> add_mapped(const WorkerFlags& flags, InputRoots::Limits& limits) {
  if (flags.data_map.empty()) return {};
  SPEEDO_ASSIGN(const DataMap map, read_data_map(flags.data_map));
  SPEEDO_ASSIGN(const std::string source, mapped_source(map, own_name(flags)));
  std::error_code code;
  for (const std::string& name : split_at_commas(source)) {
    const std::filesystem::path path = name;
    if (is_uri(name)) {
      limits.addresses.push_back(name);
    } else if (std::filesystem::exists(path, code)) {  // Else opening it tells.
      limits.folders.push_back(std::filesystem::is_directory(path, code) ? path : folder_of(path));
    }
  }
  return {};
}

// What nets of the master may name. Null: everything.
Result<std::unique_ptr<InputRoots>> confine_inputs(const WorkerFlags& flags,
                                                   const std::filesystem::path& cache) {
  InputRoots::Limits limits;
  for (const std::string& name : split_at_commas(flags.data_root)) {
    if (name == "/") return std::unique_ptr<InputRoots>();
    if (is_uri(name)) {
      limits.addresses.push_back(name);
    } else {
      limits.folders.emplace_back(name);
    }
  }
  if (limits.folders.empty()) limits.folders.emplace_back(".");
  SPEEDO_TRY(add_mapped(flags, limits));
  limits.copies = cache;
  return InputRoots::confine(limits);
}

// The device of a worker that merges a part; see kPartDevice.
Result<std::string> part_device(const WorkerFlags& flags) {
  if (flags.shard.empty() || flags.shard == "any") return std::string(kPartDevice);
  const auto part = parse_number<std::uint64_t>(flags.shard);
  if (!part || *part == 0 || *part > kRecordServersMax) {
    return Error{ErrorCode::kUsage, fmt::format("--shard={}: which of the master's Redis servers, "
                                                "1 to {}",
                                                flags.shard, kRecordServersMax)};
  }
  return fmt::format("{}:{}", kPartDevice, *part);
}

Result<void> set_part(const WorkerFlags& flags, WorkerOptions& options) {
  if (flags.shard.empty()) return {};
  if (flags.count != 1 || !flags.emulate_compute.empty()) {
    return Error{ErrorCode::kUsage,
                 "--shard merges one part and trains nothing: leave out --workers and "
                 "--emulate-compute, or start them as processes of their own"};
  }
  SPEEDO_ASSIGN(options.session.device, part_device(flags));
  options.merges_part = true;
  return {};
}

}  // namespace

Result<int> worker_program(const std::vector<std::string>& arguments,
                           const ProcessSecrets& secrets) {
  SPEEDO_TRY(refuse_speedo_flags(arguments, SpeedoProgram::kWorker));
  OptionValues values(Program::kWorker);
  SPEEDO_ASSIGN(const Parsed parsed, read_program_options(arguments, values));
  if (parsed == Parsed::kDone) return 0;
  const WorkerFlags flags = worker_flags(values);
  SPEEDO_TRY(check_device(flags.compute));
  SPEEDO_TRY(parse_address(flags.master));
  SPEEDO_TRY(check(flags.gate));
  SPEEDO_ASSIGN(const RedisTlsFiles redis_tls, redis_tls_files(values));
  if (!flags.redis.empty()) SPEEDO_TRY(parse_redis_addresses(flags.redis));
  std::optional<EmulatedCompute> emulated;
  if (!flags.emulate_compute.empty()) {
    SPEEDO_ASSIGN(emulated, parse_emulated_compute(flags.emulate_compute));
  }

  set_up_console(flags.log);
  if (flags.dry_run) {
    Examination examination;
    examination.workers = flags.count;
    examination.redis = flags.redis;
    examination.master = flags.master;
    examination.gate = gate_files(flags.gate);
    SPEEDO_ASSIGN(examination.source, source_of(flags));
    examination.redis_tls = redis_tls;
    SPEEDO_ASSIGN(examination.credentials, redis_credentials(flags.redis_password_file, secrets));
    examination.compute = flags.compute;
    return examine(examination);
  }
  install_signal_handlers(SignalEffect::kSnapshotAndStop, SignalEffect::kNone);
  const GracePeriod grace(std::chrono::seconds(flags.grace_period_s), "speedo-worker");
  SPEEDO_ASSIGN(const std::unique_ptr<Trace> trace,
                Trace::start(flags.trace, "speedo-worker " + flags.host));
  SPEEDO_ASSIGN(const RedisCredentials credentials,
                redis_credentials(flags.redis_password_file, secrets));
  // The master has looked at whom it lets in.
  StoreTerms terms{.credentials = credentials, .tls = redis_tls, .may_be_open = true};
  if (flags.store_timeout_s == 0) terms.opening_attempts_max = 1;
  SPEEDO_ASSIGN(terms.limit, traffic_limit(flags.max_rate));
  SPEEDO_ASSIGN(terms.source, source_of(flags));
  SPEEDO_ASSIGN(const ComputeOptions compute, compute_options(flags));
  SPEEDO_INFO("{} {}", flags.count > 1 ? "Each worker computes with" : "Computing with",
              describe(compute));
  if (flags.port != 0) SPEEDO_INFO("--port {}: not needed, a worker opens no port", flags.port);
  const auto pid = static_cast<std::uint64_t>(::getpid());
  WorkerOptions options;
  options.master = flags.master;
  options.gate = gate_files(flags.gate);
  options.source = terms.source;
  options.store_override = StoreAddress(flags.redis);
  options.store_timeout = std::chrono::seconds(flags.store_timeout_s);
  options.count = flags.count;
  options.name_prefix = own_name(flags) + "/" + std::to_string(pid);
  options.session.device = device_text(compute);
  options.session.seed = pid;
  options.session.connect_timeout = std::chrono::seconds(flags.connect_timeout_s);
  TrainerParts parts = trainer_parts(compute);
  parts.shares_memory = !flags.no_shared_memory;
  if (parts.shares_memory) options.find_door = find_memory_door;
  parts.admit = make_memory_guard(flags.count, memory_policy(compute, flags.force));
  if (emulated) emulate(*emulated, parts, options.session);
  SPEEDO_TRY(map_data(flags, parts));
  SPEEDO_TRY(set_part(flags, options));
  SPEEDO_ASSIGN(const std::unique_ptr<InputRoots> roots,
                confine_inputs(flags, remote_cache_folder(values)));
  auto done = run_worker(options, {stop_requested}, parts, store_opener(terms));
  if (const HelperTotals parsers = parser_totals(); parsers.died > 0) {
    SPEEDO_WARN("{} of {} parser processes ended early", parsers.died, parsers.started);
  }
  SPEEDO_DEBUG("Memory at the peak: {}", format_bytes(peak_resident_bytes()));
  SPEEDO_TRY(done);
  return 0;
}

}  // namespace speedo
