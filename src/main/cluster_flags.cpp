#include "main/cluster_flags.hpp"

#include <CLI/CLI.hpp>

#include <speedo/store/redis_store.hpp>

#include "main/flag_values.hpp"
#include "main/stages.hpp"

namespace speedo {

namespace {

Error usage(std::string message) { return {ErrorCode::kUsage, std::move(message)}; }

void add_job_flags(CLI::App& app, ClusterFlags& flags) {
  const char* group = "Schedule: when results are merged";
  takes(app.add_option("--hybrid", flags.hybrid,
                       "Stages one after another, repeated: =maxIter 100 =sync == =maxIter 300 "
                       "=drop 3 ('=' for '--', '==' between stages)"),
        "STAGES")
      ->group(group);
  takes_file(app.add_option("--hybrid-file", flags.hybrid_file,
                            "The same as a TOML file, a [[stage]] each (conf/hybrid.toml)"))
      ->group(group);
  app.add_flag("--deterministic", flags.deterministic,
               "Result depends on seed and number of workers only: needs rounds, a seed, and an "
               "update rule without state on the workers")
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
  group = "Solver (override the prototxt)";
  takes_count(app.add_option("--start-iter", flags.start_iter, "Number of the first iteration"), 0)
      ->group(group);
  takes_count(app.add_option("--batch", flags.batch,
                             "Effective batch of one worker, by iter_size: a multiple of the net's "
                             "batch_size"),
              1)
      ->group(group);
  takes_count(app.add_option("--seed", flags.seed, "random_seed"), 0)->group(group);
}

void add_start_flags(CLI::App& app, ClusterFlags& flags, ClusterRole role) {
  const char* group = "Start from";
  // With a value only behind '=': SpeeDO's --resume has none.
  app.add_flag("--resume{store}", flags.resume,
               role == ClusterRole::kMaster
                   ? "What the store has; --resume=auto: the newest valid checkpoint of store and "
                     "files, or a new start; --resume=FILE.speedo: that one"
                   : "=auto: the newest valid checkpoint file, or a new start; =FILE.speedo: that "
                     "one")
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
  takes_count(app.add_option("--keep-snapshots", flags.keep_snapshots,
                             "Keep the last N checkpoints, and the last whole one with finite "
                             "weights (default: all)"),
              1)
      ->group(group);
  app.add_flag("--keep-best", flags.keep_best,
               "Besides them keep the one with the best test result")
      ->group(group);
}

void add_network_flags(CLI::App& app, ClusterFlags& flags) {
  const char* group = "Network and store";
  takes(
      app.add_option("--redis", flags.redis,
                     "HOST[:PORT], redis://[[USER]:PASSWORD@]HOST[:PORT] or unix:///PATH (default "
                     "127.0.0.1:6379)"),
      "ADDRESS")
      ->group(group);
  takes(app.add_option("--bind", flags.bind, "Address to listen on (default 127.0.0.1)"), "ADDRESS")
      ->group(group);
  takes_port(app.add_option("--port", flags.port, "Port to listen on (default 0: any free one)"))
      ->group(group);
  takes(app.add_option("--host", flags.host, "Address that workers are told (default: --bind)"),
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
}

void add_other_flags(CLI::App& app, ClusterFlags& flags, ClusterRole role) {
  const char* group = "Other";
  takes(app.add_option("--key-name,--job", flags.key_name,
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
  app.add_flag("--debug", flags.debug, "Log more")->group(group);
  if (role != ClusterRole::kMaster) return;
  app.add_flag("--sleep-after-finish", flags.sleep_after_finish,
               "Stay after the end until a signal comes")
      ->group(group);
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

Result<void> check_start(const ClusterFlags& flags, ClusterRole role) {
  const int sources = (flags.resume.empty() ? 0 : 1) + (flags.snapshot.empty() ? 0 : 1) +
                      (flags.weights.empty() ? 0 : 1);
  if (sources > 1) {
    return usage(
        "--snapshot, --weights and --resume each give the weights to start from: give one of them");
  }
  if (flags.start_iter && (!flags.resume.empty() ||
                           flags.snapshot.find(".solverstate") != std::string::npos)) {
    return usage("--start-iter contradicts " +
                 (flags.resume.empty() ? "--snapshot " + flags.snapshot : std::string("--resume")) +
                 ", which knows its iteration: give one of them");
  }
  if (flags.snapshot.ends_with(".speedo")) {
    return usage("--snapshot " + flags.snapshot +
                 ": a checkpoint of a cluster is given with --resume=" + flags.snapshot);
  }
  if (role == ClusterRole::kRun && flags.resume == kResumeFromStore) {
    return usage("--resume: the Redis of `speedo run` ends with it, so there is no store to resume "
                 "from: give --resume=auto or --resume=FILE.speedo");
  }
  const std::string& from = flags.resume;
  if (!from.empty() && from != kResumeFromStore && from != kResumeNewest &&
      !from.ends_with(".speedo")) {
    return usage("--resume=" + from + ": takes auto or a .speedo file (a .solverstate or a "
                 ".caffemodel is given with --snapshot)");
  }
  return {};
}

Result<void> check_deterministic(const ClusterFlags& flags) {
  if (!flags.deterministic) return {};
  SPEEDO_ASSIGN(const WorkerRange range, parse_workers(flags.workers));
  if (range.max != 0 && range.min != range.max) {
    return usage("--deterministic needs a fixed number of workers: --workers " +
                 std::to_string(range.max) + " instead of " + flags.workers);
  }
  if (flags.shard == "offset") {
    return usage("--shard offset depends on the order in which workers join, so --deterministic "
                 "contradicts it");
  }
  if (flags.shard_by == "speed") {
    return usage("--shard-by speed depends on measured times, so --deterministic contradicts it");
  }
  return {};
}

Result<void> check_checkpoints(const ClusterFlags& flags) {
  if (flags.keep_best && !flags.keep_snapshots) {
    return usage("--keep-best keeps one checkpoint besides the last N, but without "
                 "--keep-snapshots N all are kept: add it, or leave --keep-best out");
  }
  return {};
}

Result<void> check_shards(const ClusterFlags& flags) {
  if (flags.shard == "offset" && flags.shard_by == "speed") {
    return usage("--shard-by speed gives out shares of the data, but with --shard offset each "
                 "worker reads on alone: leave one out");
  }
  return {};
}

}  // namespace

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
  add_schedule_flags(app, flags.schedule, FlagScope::kJob);
  add_job_flags(app, flags);
  add_start_flags(app, flags, role);
  add_checkpoint_flags(app, flags);
  if (role == ClusterRole::kMaster) add_network_flags(app, flags);
  add_time_out_flags(app, flags);
  add_compute_flags(app, flags.compute,
                    role == ClusterRole::kRun ? ThreadScope::kWorkers : ThreadScope::kProcess);
  add_other_flags(app, flags, role);
}

Result<void> check(const ClusterFlags& flags, ClusterRole role) {
  SPEEDO_TRY(worker_range(flags));
  SPEEDO_TRY(check_start(flags, role));
  SPEEDO_TRY(check_checkpoints(flags));
  SPEEDO_TRY(check_shards(flags));
  SPEEDO_TRY(check_deterministic(flags));
  SPEEDO_TRY(make_stages(flags));
  if (role == ClusterRole::kMaster) SPEEDO_TRY(parse_redis_uri(flags.redis));
  if (flags.device != "cpu") {
    return usage("--device " + flags.device + ": only cpu is built so far");
  }
  if (!is_loopback(flags.bind) && !flags.insecure) {
    return usage("--bind " + flags.bind +
                 ": the port is not yet authenticated, so whoever reaches it can join or crash the "
                 "master; add --insecure if only trusted hosts can");
  }
  return {};
}

Result<WorkerRange> worker_range(const ClusterFlags& flags) {
  SPEEDO_ASSIGN(WorkerRange range, parse_workers(flags.workers));
  if (flags.deterministic) range = {range.start, range.start, range.start};
  return range;
}

}  // namespace speedo
