#include "cli/flags/cluster_flags.hpp"

#include <CLI/CLI.hpp>

#include <speedo/store/redis_store.hpp>

#include "cli/flags/flag_values.hpp"
#include "cli/password_source.hpp"
#include "cli/flags/speedo_flags.hpp"
#include "cli/stages.hpp"

namespace speedo {

namespace {

void add_job_flags(CLI::App& app, ClusterFlags& flags) {
  const char* group = "Schedule: when results are merged";
  takes(app.add_option("--hybrid", flags.hybrid,
                       "Stages one after another, repeated: =maxIter 100 =sync == =maxIter 300 "
                       "=drop 3 ('=' for '--', '==' between stages); flags beside it are each "
                       "stage's defaults"),
        "STAGES")
      ->group(group);
  takes_file(app.add_option("--hybrid-file", flags.hybrid_file,
                            "The same as a TOML file, a [[stage]] each (conf/hybrid.toml)"))
      ->group(group);
  app.add_flag("--deterministic", flags.deterministic,
               "Result depends on seed and number of workers only, not on threads or processors: "
               "needs rounds, a seed, an update rule without state on the workers and, on x86-64, "
               "AVX2 and FMA; slower")
      ->group(group);
  group = "Data";
  takes_one_of(app.add_option("--shard", flags.shard,
                              "disjoint (default): each record of an epoch once, whoever trains "
                              "it; offset: worker k of N reads on alone from k/N of the data"),
               {"disjoint", "offset"})
      ->group(group);
  takes_one_of(app.add_option("--shard-by", flags.shard_by,
                              "In rounds: equal shares for all (default), or more for a faster "
                              "worker (speed)"),
               {"equal", "speed"})
      ->group(group);
  group = kSolverFlagGroup;
  takes_count(app.add_option("--start-iter", flags.start_iter,
                             "Number of the first iteration "
                             "(default 0, or the snapshot's)"),
              0)
      ->group(group);
  takes_count(app.add_option("--batch", flags.batch,
                             "Effective batch of one worker, by iter_size: a multiple of the net's "
                             "batch_size (default: the solver's)"),
              1)
      ->group(group);
  add_seed_flag(app, flags.seed);
}

void add_start_flags(CLI::App& app, ClusterFlags& flags, ClusterRole role) {
  const char* group = "Start from";
  // With a value only behind '=': SpeeDO's --resume has none.
  app.add_flag("--resume{store}", flags.resume,
               role == ClusterRole::kMaster
                   ? "What the store has; --resume=auto: this training's newest valid checkpoint "
                     "in store and files, or a new start; --resume=FILE.speedo: that one"
                   : "=auto: the last training's newest valid checkpoint file, or a new start; "
                     "=FILE.speedo: that one")
      ->type_name("[=auto|=FILE]")
      ->group(group);
  takes_file(app.add_option("--snapshot", flags.snapshot,
                            "A .solverstate (goes on at its iteration) or a .caffemodel"))
      ->group(group);
  takes_file(
      app.add_option("--weights", flags.weights, "One or more .caffemodel files, comma-separated"))
      ->group(group);
  if (role != ClusterRole::kMaster) return;
  app.add_flag("--take-over", flags.take_over,
               "Take the job from a master that still holds it: that one ends with exit code 75")
      ->group(group);
}

void add_checkpoint_flags(CLI::App& app, ClusterFlags& flags) {
  const char* group = "Checkpoints";
  takes_count(app.add_option("--publish-interval", flags.publish_interval,
                             "Merges between checkpoints of the solver's history in the store, if "
                             "the master keeps it (default: 1, from 50 MiB of weights on 10); the "
                             "weights are there after every merge"),
              1)
      ->group(group);
  takes_count(app.add_option("--snapshot-interval", flags.snapshot_interval,
                             "Merges between checkpoint files; 0: at the end only (default: the "
                             "solver's snapshot)"),
              0)
      ->group(group);
  takes_count(app.add_option("--keep-snapshots", flags.rotation.keep,
                             "Keep the last N checkpoints, and the last whole one with finite "
                             "weights (default: all)"),
              1)
      ->group(group);
  add_keep_best_flag(app, flags.rotation);
}

void add_network_flags(CLI::App& app, ClusterFlags& flags) {
  const char* group = "Network and store";
  takes(
      app.add_option("--redis", flags.redis,
                     "HOST[:PORT], redis://[USER@]HOST[:PORT][/DB] or unix://[USER@]/PATH (default "
                     "127.0.0.1:6379, or a private one if none answers there)"),
      "ADDRESS")
      ->group(group);
  add_password_flag(app, flags.redis_password_file);
  takes(app.add_option("--bind", flags.bind,
                       "Address to listen on (default: --host, else 127.0.0.1)"),
        "ADDRESS")
      ->group(group);
  takes_port(app.add_option("--port", flags.port, "Port to listen on (default 0: any free one)"))
      ->group(group);
  takes(app.add_option("--host", flags.host,
                       "Address that workers are told (default: --bind; for 0.0.0.0 or :: that of "
                       "the interface which others reach)"),
        "ADDRESS")
      ->group(group);
  app.add_flag("--insecure", flags.insecure,
               "Allow --bind to an address that others reach: the port does not authenticate yet")
      ->group(group);
  takes_file(app.add_option("--address-file", flags.address_file,
                            "Write the master's address to this file once it listens"))
      ->group(group);
}

void add_time_out_flags(CLI::App& app, ClusterFlags& flags) {
  const char* group = "Time-outs in seconds";
  takes_count(app.add_option("--join-timeout,--timeout", flags.join_timeout_s,
                             "Wait so long for the workers to join; 0: for ever (default)"),
              0)
      ->group(group);
  takes_count(app.add_option("--below-min-timeout", flags.below_min_timeout_s,
                             "End when training has paused so long for want of workers; 0: never "
                             "(default)"),
              0)
      ->group(group);
  takes_count(app.add_option("--worker-timeout", flags.worker_timeout_s,
                             "A worker that is silent for so long counts as dead; 0: never "
                             "(default 10)"),
              0)
      ->group(group);
  takes_count(app.add_option("--stall-timeout", flags.stall_timeout_s,
                             "So does one whose computation stands still for so long; 0: never "
                             "(default 10 times --worker-timeout)"),
              0)
      ->group(group);
  add_store_timeout_flag(app, flags.store_timeout_s, group);
  add_grace_period_flag(app, flags.grace_period_s, group);
}

void add_other_flags(CLI::App& app, ClusterFlags& flags, ClusterRole role) {
  const char* group = "Other";
  takes(app.add_option("--job,--key-name", flags.key_name,
                       "Name of the job: its key space in Redis, and in its checkpoints (default: "
                       "the net's name)"),
        "NAME")
      ->group(group);
  takes(app.add_option("--device", flags.device, "cpu"), "WORD")->group(group);
  app.add_flag("--cpu-db-actor", flags.cpu_db_actor,
               "Merge on the CPU: SpeeDO's flag, always so here")
      ->group(group);
  app.add_flag("--json", flags.json, "Print the result as one JSON object on standard output")
      ->group(group);
  add_log_flags(app, flags.log);
  add_signal_flags(app, flags.signals);
  if (role != ClusterRole::kMaster) return;
  app.add_flag("--sleep-after-finish{until-signal}", flags.sleep_after_finish,
               "Stay after the end for so many seconds, or until a signal comes")
      ->type_name("[=SECONDS]")
      ->group(group);
}

// The store's weights may be given another number, as SpeeDO's users do; a checkpoint file, or the
// newest of both, is what it is.
Result<void> check_start_iteration(const ClusterFlags& flags) {
  if (!flags.start_iter || flags.resume == kResumeFromStore) return {};
  if (!flags.resume.empty()) {
    return usage_error("--start-iter contradicts --resume=" + flags.resume +
                       ", which knows its iteration: give one of them; to count weights anew, "
                       "--weights M.caffemodel --start-iter " +
                       std::to_string(*flags.start_iter));
  }
  if (flags.snapshot.find(".solverstate") != std::string::npos) {
    return usage_error("--start-iter contradicts --snapshot " + flags.snapshot +
                       ", which knows its iteration: give one of them");
  }
  return {};
}

Result<void> check_start(const ClusterFlags& flags, ClusterRole role) {
  const int sources = (flags.resume.empty() ? 0 : 1) + (flags.snapshot.empty() ? 0 : 1) +
                      (flags.weights.empty() ? 0 : 1);
  if (sources > 1) {
    return usage_error(
        "--snapshot, --weights and --resume each give the weights to start from: give one of them");
  }
  SPEEDO_TRY(check_start_iteration(flags));
  if (flags.snapshot.ends_with(".speedo")) {
    return usage_error("--snapshot " + flags.snapshot +
                       ": a checkpoint of a cluster is given with --resume=" + flags.snapshot);
  }
  if (role == ClusterRole::kRun && flags.resume == kResumeFromStore) {
    return usage_error(
        "--resume: the Redis of `speedo run` ends with it, so there is no store to resume "
        "from: give --resume=auto or --resume=FILE.speedo");
  }
  const std::string& from = flags.resume;
  if (!from.empty() && from != kResumeFromStore && from != kResumeNewest &&
      !from.ends_with(".speedo")) {
    return usage_error("--resume=" + from +
                       ": takes auto or a .speedo file (a .solverstate or a "
                       ".caffemodel is given with --snapshot)");
  }
  return {};
}

Result<void> check_deterministic(const ClusterFlags& flags) {
  if (!flags.deterministic) return {};
  SPEEDO_ASSIGN(const WorkerRange range, parse_workers(flags.workers));
  if (range.max != 0 && range.min != range.max) {
    return usage_error("--deterministic needs a fixed number of workers: --workers " +
                       std::to_string(range.max) + " instead of " + flags.workers);
  }
  if (flags.shard == "offset") {
    return usage_error(
        "--shard offset depends on the order in which workers join, so --deterministic "
        "contradicts it");
  }
  if (flags.shard_by == "speed") {
    return usage_error(
        "--shard-by speed depends on measured times, so --deterministic contradicts it");
  }
  return {};
}

Result<void> check_shards(const ClusterFlags& flags) {
  if (flags.shard == "offset" && flags.shard_by == "speed") {
    return usage_error(
        "--shard-by speed gives out shares of the data, but with --shard offset each "
        "worker reads on alone: leave one out");
  }
  return {};
}

Result<void> check_network(const ClusterFlags& flags) {
  const std::string bind = bind_address(flags);
  if (is_loopback(bind) || flags.insecure) return {};
  return usage_error(
      (flags.bind.empty() ? "--host " : "--bind ") + bind +
      ": the port is not yet authenticated, so whoever reaches it can join or crash the "
      "master; add --insecure if only trusted hosts can" +
      (flags.bind.empty() ? ", or --bind with the address to listen on" : ""));
}

}  // namespace

void add_seed_flag(CLI::App& app, std::optional<std::int64_t>& seed) {
  takes_count(app.add_option("--seed", seed,
                             "random_seed (default: the solver's, else one that is drawn and "
                             "logged)"),
              0)
      ->group(kSolverFlagGroup);
}

void add_keep_best_flag(CLI::App& app, RotationRules& rules) {
  app.add_flag("--keep-best", rules.keep_best,
               "Besides them keep the one with the best test result")
      ->group("Checkpoints");
}

Result<void> check(const RotationRules& rules) {
  if (rules.keep_best && !rules.keep) {
    return usage_error(
        "--keep-best keeps one checkpoint besides the last N, but without "
        "--keep-snapshots N all are kept: add it, or leave --keep-best out");
  }
  return {};
}

void add_store_timeout_flag(CLI::App& app, std::int64_t& seconds, const char* group) {
  takes_count(app.add_option("--store-timeout", seconds,
                             "Wait so long for a Redis that is out of reach, then end; 0: end at "
                             "once (default 600)"),
              0)
      ->group(group);
}

void add_grace_period_flag(CLI::App& app, std::int64_t& seconds, const char* group) {
  takes_count(app.add_option("--grace-period", seconds,
                             "After SIGINT or SIGTERM end within so long, whatever hangs; the "
                             "snapshot comes first (default 25)"),
              1)
      ->group(group);
}

std::string bind_address(const ClusterFlags& flags) {
  if (!flags.bind.empty()) return flags.bind;
  return flags.host.empty() ? "127.0.0.1" : flags.host;
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

Result<ComputeOptions> settle(const ClusterFlags& flags) {
  ComputeFlags compute = flags.compute;
  compute.pinned = flags.deterministic;
  return settle(compute);
}

void add_cluster_flags(CLI::App& app, ClusterFlags& flags, ClusterRole role) {
  const char* group = "Training";
  takes_file(app.add_option("--solver", flags.solver, "Solver prototxt"))->required()->group(group);
  takes(app.add_option("--workers,--worker", flags.workers,
                       role == ClusterRole::kMaster
                           ? "N: training starts when so many have joined, and goes on with any "
                             "number. MIN:MAX: it starts at MIN, pauses below MIN and takes no "
                             "more than MAX (default 1)"
                           : "Worker processes: N, or MIN:MAX to begin as soon as MIN are ready "
                             "and pause below (default 1)"),
        "N|MIN:MAX")
      ->group(group);
  add_state_flags(app, flags.state);
  add_schedule_flags(app, flags.schedule, FlagScope::kJob);
  add_job_flags(app, flags);
  add_start_flags(app, flags, role);
  add_checkpoint_flags(app, flags);
  if (role == ClusterRole::kMaster) add_network_flags(app, flags);
  add_time_out_flags(app, flags);
  add_compute_flags(app, flags.compute,
                    role == ClusterRole::kRun ? ThreadScope::kWorkers : ThreadScope::kProcess);
  add_force_flag(app, flags.force);
  add_other_flags(app, flags, role);
}

Result<void> check(const ClusterFlags& flags, ClusterRole role) {
  SPEEDO_TRY(worker_range(flags));
  SPEEDO_TRY(check_start(flags, role));
  SPEEDO_TRY(check(flags.rotation));
  SPEEDO_TRY(check_shards(flags));
  SPEEDO_TRY(check_deterministic(flags));
  SPEEDO_TRY(make_stages(flags));
  if (role == ClusterRole::kMaster) SPEEDO_TRY(parse_redis_address(flags.redis));
  if (flags.device != "cpu") {
    return usage_error("--device " + flags.device + ": only cpu is built so far");
  }
  if (!flags.sleep_after_finish.empty()) SPEEDO_TRY(sleep_time(flags.sleep_after_finish));
  return check_network(flags);
}

Result<WorkerRange> worker_range(const ClusterFlags& flags) {
  SPEEDO_ASSIGN(WorkerRange range, parse_workers(flags.workers));
  if (flags.deterministic) range = {range.start, range.start, range.start};
  return range;
}

}  // namespace speedo
