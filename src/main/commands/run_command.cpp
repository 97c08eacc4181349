#include <algorithm>
#include <numeric>
#include <optional>

#include <speedo/core/solver.hpp>
#include <speedo/train/merger.hpp>

#include "base/log.hpp"
#include "base/trace.hpp"
#include "checkpoint/snapshot.hpp"
#include "cli/data_map.hpp"
#include "cli/flags/cluster_flags.hpp"
#include "cli/flags/gpu_choice.hpp"
#include "cli/flags/speedo_flags.hpp"
#include "cli/flags/worker_names.hpp"
#include "cli/options/read_options.hpp"
#include "cli/report/console.hpp"
#include "cli/signals.hpp"
#include "cli/solver_file.hpp"
#include "cli/stages.hpp"
#include "local/core_shares.hpp"
#include "local/local_cluster.hpp"
#include "main/cluster_job.hpp"
#include "main/commands.hpp"
#include "main/examine.hpp"
#include "main/local_plan.hpp"
#include "main/parts.hpp"
#include "main/program_options.hpp"
#include "main/training_state.hpp"
#include "measure/memory_guard.hpp"

namespace speedo {

namespace {

struct RunFlags {
  ClusterFlags cluster;
  std::string log_dir, pin;
  std::vector<int> gpus;  // that workers take in turn; empty: as the flags of computing say
  std::optional<int> master_gpu;  // none: it computes on the CPU
  std::uint64_t max_restarts = 0;
  int compute_nice = 0;
};

RunFlags run_flags(const OptionValues& values) {
  RunFlags flags;
  flags.cluster = cluster_flags(values);
  values.get("log-dir", flags.log_dir);
  values.get("pin", flags.pin);
  values.get("max-restarts", flags.max_restarts);
  values.get("compute-nice", flags.compute_nice);
  return flags;
}

// One worker for each of --gpus, unless --workers says how many there are.
Result<void> choose_gpus(const OptionValues& values, RunFlags& flags) {
  ComputeFlags& compute = flags.cluster.compute;
  SPEEDO_ASSIGN(const std::string named, gpus_named(values));
  if (named.empty()) return {};
  compute.device = "cpu";
  compute.cpu_given = false;
  SPEEDO_ASSIGN(flags.gpus, parse_gpus(named, gpu_devices()));
  compute.gpu = flags.gpus.front();  // stands for all where flags are checked
  if (!values.given("workers")) flags.cluster.workers = std::to_string(flags.gpus.size());
  return {};
}

// That of --device alone, if it counts: a master has no other flag for it.
Result<void> choose_gpu_of_master(const OptionValues& values, RunFlags& flags) {
  ComputeFlags of_master;
  const Source others = std::max(values.source_of("gpu"), values.source_of("gpus"));
  if (values.source_of("device") >= others) values.get("device", of_master.device);
  SPEEDO_ASSIGN(flags.master_gpu, gpu_of(of_master));
  return {};
}

// What is said of GPUs without naming one: workers take them all in turn.
void take_gpus_in_turn(const SolverFile& file, RunFlags& flags) {
  ComputeFlags& compute = flags.cluster.compute;
  if (!flags.gpus.empty()) return;
  follow_solver_mode_in_turn(file.solver, flags.cluster.solver, compute);
  if (compute.device != "gpu" || compute.gpu) return;
  flags.gpus = usable_gpus(gpu_devices());
}

// A replica on a GPU and the master's on the CPU round the products of factors differently.
Result<void> leave_out_factors(const ComputeOptions& compute, RunFlags& flags) {
  if (!compute.gpu || flags.master_gpu) return {};
  SPEEDO_ASSIGN(const std::vector<Schedule> stages, make_stages(flags.cluster));
  const auto may_have = [](const Schedule& stage) {
    return stage.update.replicated && stage.update.factors;
  };
  if (std::ranges::none_of(stages, may_have)) return {};
  flags.cluster.schedule.no_factors = true;
  SPEEDO_INFO(
      "--replicated: as with --no-factors, since workers compute on GPUs and the master on "
      "the CPU, which would round products of factors differently");
  return {};
}

// What the master gets of the flags here. Its threads are its own.
std::vector<std::string> master_flags(const RunFlags& flags, const OptionValues& values) {
  std::vector<std::string> arguments = values.arguments_for(Program::kMaster);
  if (!values.given("workers")) arguments.push_back("--workers=" + flags.cluster.workers);
  if (flags.cluster.schedule.no_factors && !values.given("no-factors")) {
    arguments.emplace_back("--no-factors");
  }
  std::erase_if(arguments, [](const std::string& flag) { return flag.starts_with("--threads="); });
  arguments.push_back("--threads=" + std::to_string(kMasterThreads));
  arguments.emplace_back(kNoConfig);
  return arguments;
}

// Of each worker.
Result<std::vector<int>> threads_of(const ClusterFlags& flags, int threads) {
  SPEEDO_ASSIGN(const WorkerRange workers, parse_workers(flags.workers));
  SPEEDO_TRY(check_thread_count(flags.compute, workers.expected()));
  std::vector<int> shares = share_with_master(threads, workers.expected());
  const int most = shares.front(), least = shares.back();
  SPEEDO_INFO(
      "Threads: {}{} for each worker; the master tests with {}{}, and merges nets of more "
      "than 4 MiB with {} besides",
      least, most > least ? fmt::format(" or {}", most) : "", kMasterThreads,
      std::accumulate(shares.begin(), shares.end(), kMasterThreads) > threads ? " more" : "",
      MergerConfig{}.threads);
  return shares;
}

// Empty: the workers are not pinned.
Result<std::vector<std::vector<int>>> processors_of_workers(const std::string& pin,
                                                            const std::vector<int>& threads) {
  std::vector<std::vector<int>> none;
  if (pin == "off") return none;
  auto shares = share_processors(allowed_processors(), threads);
  if (!shares && pin == "auto") return none;
  if (!shares) return Error{shares.error().code, "--pin on: " + shares.error().message};
  return shares;
}

// A shard's merger is a process of its own, with which workers share no memory.
LocalStore local_store(const ClusterFlags& flags) {
  return {.servers = std::max<std::uint64_t>(1, flags.shards),
          .shares_memory = !flags.no_shared_memory && flags.shards == 0,
          .part_copies = flags.shards > 0 && !flags.no_shard_copies,
          .worker_states = flags.snapshot_workers};
}

LocalPlan local_plan(const RunFlags& flags, const SolverFile& file, std::vector<Schedule> stages,
                     const ComputeOptions& compute, std::uint64_t workers) {
  return {.file = file,
          .stages = std::move(stages),
          .compute = compute,
          .gpus = flags.gpus,
          .master_gpu = flags.master_gpu,
          .workers = workers,
          .store = local_store(flags.cluster)};
}

Result<std::int64_t> check_memory(const RunFlags& flags, const SolverFile& file,
                                  const ComputeOptions& compute, std::uint64_t workers) {
  SPEEDO_ASSIGN(std::vector<Schedule> stages, make_stages(flags.cluster));
  return check_cluster_memory(
      cluster_plan(local_plan(flags, file, std::move(stages), compute, workers)),
      {.force = flags.cluster.force});
}

void warn_of_crowd(std::size_t workers) {
  const std::size_t processors = allowed_processors().size();
  if (processors == 0 || workers <= processors) return;
  SPEEDO_WARN("{} workers share {} processor{}: more than one a processor makes nothing faster and "
              "takes memory",
              workers, processors, processors == 1 ? "" : "s");
}

ChildCommand joining(const std::vector<std::string>& arguments, const MasterPlace& master) {
  ChildCommand command;
  command.arguments = arguments;
  command.arguments.push_back("--master=" + master.address);
  command.arguments.push_back("--token-file=" + master.token_file.string());
  return command;
}

// `processors`: that it runs on; empty: any.
WorkerProcess worker_process(const RunFlags& flags, std::uint64_t number, int threads,
                             const std::vector<int>& processors) {
  const std::string name = worker_name(number);
  std::vector<std::string> arguments = {own_program("speedo-worker"), "--host=" + name,
                                        "--threads=" + std::to_string(threads)};
  ClusterFlags own = flags.cluster;
  if (!flags.gpus.empty()) own.compute.gpu = flags.gpus[number % flags.gpus.size()];
  for (std::string& flag : worker_flags(own, flags.compute_nice)) {
    arguments.push_back(std::move(flag));
  }
  return {name, [arguments, processors](const MasterPlace& master) -> Result<ChildCommand> {
            ChildCommand command = joining(arguments, master);
            command.processors = processors;
            return command;
          }};
}

// Beside a redis-server of the same number, counted from 1.
WorkerProcess shard_process(const RunFlags& flags, std::uint64_t number) {
  const std::string name = fmt::format("shard{}", number);
  std::vector<std::string> arguments = {own_program("speedo-worker"), "--host=" + name,
                                        fmt::format("--shard={}", number), "--threads=1"};
  arguments.push_back("--store-timeout=" + std::to_string(flags.cluster.store_timeout_s));
  arguments.emplace_back(kNoConfig);
  for (std::string& flag : to_arguments(flags.cluster.log)) arguments.push_back(std::move(flag));
  return {.name = name,
          .command = [arguments](const MasterPlace& master) -> Result<ChildCommand> {
            return joining(arguments, master);
          },
          .trains = false};
}

Result<LocalClusterOptions> cluster_options(const RunFlags& flags, const OptionValues& values,
                                            const std::vector<int>& threads) {
  LocalClusterOptions options;
  SPEEDO_ASSIGN(const auto processors, processors_of_workers(flags.pin, threads));
  for (std::size_t number = 0; number < threads.size(); ++number) {
    options.workers.push_back(
        worker_process(flags, number, threads[number],
                       processors.empty() ? std::vector<int>{} : processors[number]));
  }
  for (std::uint64_t number = 1; number <= flags.cluster.shards; ++number) {
    options.workers.push_back(shard_process(flags, number));
  }
  options.redis = [shards = flags.cluster.shards](const std::filesystem::path& folder)
      -> Result<std::vector<RedisPlace>> {
    std::vector<RedisPlace> servers = {private_redis(folder)};
    while (servers.size() < shards) {
      servers.push_back(private_redis(folder, fmt::format("redis{}", servers.size() + 1)));
    }
    return servers;
  };
  options.max_restarts = flags.max_restarts;
  options.json = flags.cluster.json;
  options.log_dir = flags.log_dir;
  options.master_flags = master_flags(flags, values);
  return options;
}

std::vector<std::string> worker_names(std::uint64_t workers) {
  std::vector<std::string> names;
  for (std::uint64_t number = 0; number < workers; ++number) names.push_back(worker_name(number));
  return names;
}

// A map may be of a larger cluster, but a slip in a name goes unnoticed where * is for all others.
Result<void> check_data_map(const std::string& path, const std::vector<std::string>& workers) {
  if (path.empty()) return {};
  SPEEDO_ASSIGN(const DataMap map, read_data_map(path));
  for (const std::string& worker : workers) SPEEDO_TRY(mapped_source(map, worker));
  for (const auto& [name, source] : map) {
    if (name == kAllOthers || std::ranges::find(workers, name) != workers.end()) continue;
    SPEEDO_WARN("--data-map {}: no worker is called '{}'", path, name);
  }
  return {};
}

// As its master is told of them: which ports they will have does not matter before.
ClusterFlags with_servers(ClusterFlags flags) {
  flags.redis = "127.0.0.1:1";
  for (std::uint64_t port = 2; port <= flags.shards; ++port) {
    flags.redis += ",127.0.0.1:" + std::to_string(port);
  }
  return flags;
}

// What the cluster is predicted to take, as its run would be judged by.
Result<ClusterDemand> demand_of(RunFlags& flags, std::uint64_t workers) {
  SPEEDO_ASSIGN(const SolverFile file, read_job_files(flags.cluster));
  take_gpus_in_turn(file, flags);
  SPEEDO_ASSIGN(const ComputeOptions compute, settle(flags.cluster));
  SPEEDO_ASSIGN(std::vector<Schedule> stages, make_stages(flags.cluster));
  return predict_cluster(
      cluster_plan(local_plan(flags, file, std::move(stages), compute, workers)));
}

// --dry-run.
Result<int> examine_run(RunFlags flags, std::uint64_t workers) {
  Examination examination;
  examination.solver = flags.cluster.solver;
  examination.state = flags.cluster.state;
  examination.refusal = refusal_of(with_servers(flags.cluster));
  examination.workers = workers;
  examination.compute = flags.cluster.compute;
  examination.json = flags.cluster.json;
  examination.force = flags.cluster.force;
  // What is wrong with the job's files is found otherwise.
  if (auto demand = demand_of(flags, workers)) examination.cluster = *std::move(demand);
  return examine(examination);
}

// The cluster, as far as it is known before anything is started.
Result<LocalClusterOptions> plan_run(RunFlags& flags, const OptionValues& values,
                                     const WorkerRange& workers) {
  SPEEDO_ASSIGN(const SolverFile file, read_job_files(flags.cluster));
  take_gpus_in_turn(file, flags);
  SPEEDO_ASSIGN(const ComputeOptions compute, settle(flags.cluster));
  SPEEDO_TRY(leave_out_factors(compute, flags));
  SPEEDO_ASSIGN(const std::vector<int> threads, threads_of(flags.cluster, compute.threads));
  SPEEDO_ASSIGN(LocalClusterOptions options, cluster_options(flags, values, threads));
  warn_of_crowd(threads.size());
  SPEEDO_ASSIGN(const std::int64_t memory, check_memory(flags, file, compute, threads.size()));
  options.needed_workers = workers.start;
  options.state = ask_training_state();
  options.predicted_memory_bytes = static_cast<std::uint64_t>(memory);
  options.snapshot_prefix = file.solver.snapshot_prefix();
  options.job = job_of(flags.cluster, file.solver);
  return options;
}

}  // namespace

Result<int> run_command(const CommandLine& line) {
  SPEEDO_TRY(refuse_speedo_flags(line.arguments, SpeedoProgram::kMaster));
  OptionValues values(Program::kRun);
  SPEEDO_ASSIGN(const Parsed parsed, read_program_options(fold_speedo(line.arguments), values));
  if (parsed == Parsed::kDone) return 0;
  RunFlags flags = run_flags(values);
  SPEEDO_TRY(choose_gpus(values, flags));
  SPEEDO_TRY(check(flags.cluster, ClusterRole::kRun));
  SPEEDO_TRY(choose_gpu_of_master(values, flags));
  SPEEDO_ASSIGN(const WorkerRange workers, parse_workers(flags.cluster.workers));
  const std::vector<std::string> names = worker_names(workers.expected());
  SPEEDO_TRY(check_worker_names(flags.cluster, names, names.front() + " to " + names.back()));

  set_up_console(flags.cluster.log);
  SPEEDO_TRY(check_data_map(flags.cluster.data_map, names));
  if (flags.cluster.dry_run) return examine_run(std::move(flags), workers.expected());
  install_signal_handlers(flags.cluster.signals);
  SPEEDO_ASSIGN(const std::unique_ptr<OutputRoot> outputs,
                confine_outputs(flags.cluster.output_root));
  SPEEDO_ASSIGN(const LocalClusterOptions options, plan_run(flags, values, workers));
  if (const auto reason = stop_requested()) {
    SPEEDO_INFO("{}: nothing was started", *reason);
    return 0;
  }
  // Held until all processes that write to it have ended.
  SPEEDO_ASSIGN(const std::unique_ptr<Trace> trace,
                Trace::start(flags.cluster.trace, "speedo run"));
  return run_local_cluster(options);
}

}  // namespace speedo
