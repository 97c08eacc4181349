#include "main/cluster_flags.hpp"

#include <algorithm>
#include <charconv>

#include <CLI/CLI.hpp>

#include <speedo/train/strategy.hpp>

#include "main/flag_values.hpp"

namespace speedo {

namespace {

Error usage(std::string message) { return {ErrorCode::kUsage, std::move(message)}; }

void add_schedule_flags(CLI::App& app, ClusterFlags& flags) {
  const char* group = "Schedule and update rule";
  takes(app.add_option("--strategy", flags.strategy,
                       "When results are merged: async (default) or sync"),
        "WORD")
      ->group(group);
  app.add_flag("--sync", flags.sync, "The same as --strategy sync")->group(group);
  app.add_flag("--gradient-only", flags.gradient_only,
               "Workers send gradients; the master applies momentum, decay and learning rate")
      ->group(group);
  takes_number(
      app.add_option("--factor", flags.factor, "Divide each worker's update by this (default 1)"))
      ->group(group);
  takes_count(app.add_option("--train", flags.train,
                             "Mini-batches a worker trains per exchange (default 1)"),
              1)
      ->group(group);
  takes_amount(app.add_option("--skip", flags.skip,
                              "Leave out update elements smaller than this (default 0)"))
      ->group(group);
  takes_one_of(app.add_option("--shard", flags.shard,
                              "disjoint (default): each record of an epoch once, whoever trains "
                              "it; offset: worker k of N reads on alone from k/N of the data"),
               {"disjoint", "offset"})
      ->group(group);
}

void add_solver_flags(CLI::App& app, ClusterFlags& flags) {
  const char* group = "Solver (override the prototxt)";
  takes_count(app.add_option("--max-iter", flags.max_iter, "Merges to train"), 0)->group(group);
  takes_count(app.add_option("--start-iter", flags.start_iter, "Number of the first iteration"), 0)
      ->group(group);
  takes_count(app.add_option("--test-interval,--test", flags.test_interval,
                             "Merges between tests; 0: never (default: the solver's, else one test "
                             "at the end)"),
              0)
      ->group(group);
  takes_number(app.add_option("--lr", flags.lr, "base_lr"))->group(group);
  takes_number(app.add_option("--momentum", flags.momentum, "momentum"))->group(group);
  takes_number(app.add_option("--weight-decay", flags.weight_decay, "weight_decay"))->group(group);
  takes_count(app.add_option("--batch", flags.batch,
                             "Effective batch of one worker, by iter_size: a multiple of the net's "
                             "batch_size"),
              1)
      ->group(group);
  takes_count(app.add_option("--seed", flags.seed, "random_seed"), 0)->group(group);
}

void add_start_flags(CLI::App& app, ClusterFlags& flags, ClusterRole role) {
  const char* group = "Start from";
  if (role == ClusterRole::kMaster) {
    app.add_flag("--resume", flags.resume, "The weights in the store")->group(group);
  }
  takes_file(app.add_option("--snapshot", flags.snapshot,
                            "A .solverstate (goes on at its iteration) or a .caffemodel"))
      ->group(group);
  takes_file(
      app.add_option("--weights", flags.weights, "One or more .caffemodel files, comma-separated"))
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
  takes(app.add_option("--key-name,--job", flags.key_name,
                       "Key space of the job in Redis (default: the net's name)"),
        "NAME")
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
  const char* group = "Time-outs";
  takes_count(app.add_option("--join-timeout,--timeout", flags.join_timeout_s,
                             "Seconds to wait for the workers to join; 0: for ever (default)"),
              0)
      ->group(group);
  takes_count(app.add_option("--worker-timeout", flags.worker_timeout_s,
                             "Seconds after which a worker that trains without a result counts as "
                             "dead; 0: never (default 3600)"),
              0)
      ->group(group);
}

void add_other_flags(CLI::App& app, ClusterFlags& flags, ClusterRole role) {
  const char* group = "Other";
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

// Texts that are numbers only, so that "3x" is not 3.
std::optional<std::uint64_t> whole_number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<void> check_strategy(const ClusterFlags& flags) {
  if (flags.sync && !flags.strategy.empty() && flags.strategy != "sync") {
    return usage("--sync contradicts --strategy " + flags.strategy + ": give one of them");
  }
  StrategyOptions options;
  options.name = strategy_name(flags);
  if (auto made = make_strategy(options); !made) {
    return usage("--strategy " + options.name + ": " + made.error().message);
  }
  return {};
}

Result<void> check_start(const ClusterFlags& flags) {
  const int sources =
      (flags.resume ? 1 : 0) + (flags.snapshot.empty() ? 0 : 1) + (flags.weights.empty() ? 0 : 1);
  if (sources > 1) {
    return usage(
        "--snapshot, --weights and --resume each give the weights to start from: give one of them");
  }
  if (flags.snapshot.find(".solverstate") != std::string::npos && flags.start_iter) {
    return usage("--start-iter contradicts --snapshot " + flags.snapshot +
                 ", which knows its iteration: give one of them");
  }
  return {};
}

Result<void> check_rule(const ClusterFlags& flags) {
  if (flags.gradient_only && flags.train > 1) {
    return usage("--gradient-only sends the gradient of one iteration, so --train " +
                 std::to_string(flags.train) + " contradicts it (use --batch for larger batches)");
  }
  if (flags.gradient_only && flags.factor) {
    return usage("--factor divides full updates, so --gradient-only contradicts it");
  }
  if (flags.gradient_only && flags.skip > 0.0) {
    return usage("--skip concerns full updates, so --gradient-only contradicts it");
  }
  if (flags.factor && !(*flags.factor > 0.0)) return usage("--factor must be greater than 0");
  return {};
}

}  // namespace

void add_cluster_flags(CLI::App& app, ClusterFlags& flags, ClusterRole role) {
  const char* group = "Training";
  takes_file(app.add_option("--solver", flags.solver, "Solver prototxt"))->required()->group(group);
  takes(app.add_option("--workers,--worker", flags.workers,
                       role == ClusterRole::kMaster
                           ? "Training starts when so many have joined; N or MIN:MAX (default 1)"
                           : "Worker processes: N, or MIN:MAX to begin as soon as MIN are ready "
                             "(default 1)"),
        "N")
      ->group(group);
  add_schedule_flags(app, flags);
  add_solver_flags(app, flags);
  add_start_flags(app, flags, role);
  if (role == ClusterRole::kMaster) add_network_flags(app, flags);
  add_time_out_flags(app, flags);
  add_other_flags(app, flags, role);
}

Result<WorkerRange> parse_workers(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto min = whole_number(text.substr(0, colon));
  const auto max = colon == std::string::npos ? min : whole_number(text.substr(colon + 1));
  if (!min || !max) return usage("--workers takes N or MIN:MAX, not '" + text + "'");
  if (*min < 1 || *max > kWorkersMax) {
    return usage("--workers " + text + ": between 1 and " + std::to_string(kWorkersMax));
  }
  if (*min > *max) return usage("--workers " + text + ": MIN is greater than MAX");
  return WorkerRange{*min, *max};
}

Result<void> check(const ClusterFlags& flags) {
  SPEEDO_TRY(parse_workers(flags.workers));
  SPEEDO_TRY(check_strategy(flags));
  SPEEDO_TRY(check_start(flags));
  SPEEDO_TRY(check_rule(flags));
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

std::string strategy_name(const ClusterFlags& flags) {
  if (flags.sync) return "sync";
  return flags.strategy.empty() ? "async" : flags.strategy;
}

}  // namespace speedo
