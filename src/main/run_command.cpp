#include <set>

#include <CLI/CLI.hpp>

#include <speedo/core/solver.hpp>

#include "base/log.hpp"
#include "main/cluster_flags.hpp"
#include "main/command_line.hpp"
#include "main/commands.hpp"
#include "main/console.hpp"
#include "main/flag_values.hpp"
#include "main/hybrid.hpp"
#include "main/later_flags.hpp"
#include "main/local_cluster.hpp"
#include "main/parts.hpp"
#include "main/signals.hpp"
#include "main/snapshot.hpp"
#include "main/solver_file.hpp"
#include "main/stages.hpp"

namespace speedo {

namespace {

constexpr const char* kFooter =
    "Flags may be written with one or two dashes, as --max-iter, --max_iter or --maxIter.\n"
    "Ctrl-C: end with a snapshot; twice: end at once.\n"
    "Examples:\n"
    "  speedo run --solver examples/mnist/lenet_solver.prototxt --workers 2 --sync --json\n"
    "  speedo run --solver S.prototxt --workers 4 --strategy easgd --train 10 --max-restarts 3\n"
    "  speedo run --solver S.prototxt --workers 4 --hybrid =maxIter 100 =sync == =drop 3";

constexpr std::int64_t kRestartsMax = 1000000;

// Workers, master and store share the cores. At 0 a merge of LeNet waits some milliseconds for one.
constexpr int kComputeNice = 5;

// Not one that the master knows, too.
bool is_own(const std::string& flag) {
  return flag.starts_with("--log-dir=") || flag.starts_with("--max-restarts=") ||
         flag.starts_with("--compute-nice=");
}

// Finds what is wrong with the prototxts before anything is started.
Result<void> check_files(const ClusterFlags& flags) {
  SPEEDO_ASSIGN(SolverFile file, load_solver(flags.solver));
  SPEEDO_TRY(SnapshotWriter(file.solver).check_writable());
  SPEEDO_TRY(inline_nets(file.solver, file.base));
  if (flags.batch) SPEEDO_TRY(set_effective_batch(*flags.batch, file.solver));
  return {};
}

// All workers are known here, so a name that none has is a slip.
Result<void> check_groups(const ClusterFlags& flags, std::uint64_t workers) {
  SPEEDO_ASSIGN(const std::vector<Schedule> stages, make_stages(flags));
  std::set<std::string> names;
  for (std::uint64_t number = 0; number < workers; ++number) names.insert(worker_name(number));
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const std::string place = flags.schedule.groups.empty()
                                  ? fmt::format("stage {}: the group file", stage + 1)
                                  : "the group file " + flags.schedule.groups;
    for (const std::vector<std::string>& group : stages[stage].strategy.groups) {
      for (const std::string& name : group) {
        if (names.contains(name)) continue;
        return Error{ErrorCode::kConfig,
                     place + " names '" + name + "', which no worker is: here they are " +
                         worker_name(0) + " to " + worker_name(workers - 1)};
      }
    }
  }
  return {};
}

}  // namespace

Result<int> run_command(const std::vector<std::string>& arguments) {
  CLI::App app("Train on a cluster of this machine: a private Redis, one master, N workers",
               "speedo run");
  ClusterFlags flags;
  std::string log_dir;
  std::uint64_t max_restarts = 0;
  int compute_nice = kComputeNice;
  add_cluster_flags(app, flags, ClusterRole::kRun);
  takes(app.add_option("--log-dir", log_dir,
                       "Folder for the workers' logs (default: a temporary one)"),
        "FOLDER")
      ->group("Other");
  takes_range(app.add_option("--max-restarts", max_restarts,
                             "Start a worker process that dies again, each at most so many times "
                             "(default 0)"),
              0, kRestartsMax)
      ->group("Other");
  takes_range(app.add_option("--compute-nice", compute_nice,
                             "Lower the priority of the workers' compute threads by so much, so "
                             "that master and store are not kept waiting; 0: not (default 5)"),
              0, kComputeNiceMax)
      ->group("Other");
  app.footer(kFooter);
  SPEEDO_TRY(refuse_later_flags(arguments));
  std::vector<std::string> normalized;
  SPEEDO_ASSIGN(const Parsed parsed, parse(app, fold_hybrid(arguments), &normalized));
  if (parsed == Parsed::kDone) return 0;
  SPEEDO_TRY(check(flags, ClusterRole::kRun));
  SPEEDO_ASSIGN(const WorkerRange workers, parse_workers(flags.workers));
  SPEEDO_TRY(check_groups(flags, workers.expected()));

  set_up_console(flags.debug);
  SPEEDO_TRY(check_files(flags));
  install_signal_handlers(SignalEffect::kSnapshotAndStop, SignalEffect::kSnapshotAndStop);
  LocalClusterOptions options;
  options.workers = workers.expected();
  options.max_restarts = max_restarts;
  options.compute_nice = compute_nice;
  options.json = flags.json;
  options.log_dir = log_dir;
  for (const std::string& flag : normalized) {
    if (!is_own(flag)) options.master_flags.push_back(flag);
  }
  return run_local_cluster(options);
}

}  // namespace speedo
