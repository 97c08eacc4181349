#include <CLI/CLI.hpp>

#include <speedo/core/solver.hpp>

#include "main/cluster_flags.hpp"
#include "main/command_line.hpp"
#include "main/commands.hpp"
#include "main/console.hpp"
#include "main/flag_values.hpp"
#include "main/later_flags.hpp"
#include "main/local_cluster.hpp"
#include "main/signals.hpp"
#include "main/snapshot.hpp"
#include "main/solver_file.hpp"

namespace speedo {

namespace {

constexpr const char* kFooter =
    "Flags may be written with one or two dashes, as --max-iter, --max_iter or --maxIter.\n"
    "Ctrl-C: end with a snapshot; twice: end at once.\n"
    "Not built yet: --max-advance, --weedout, --moving-rate, --hybrid.\n\n"
    "Example:\n"
    "  speedo run --solver examples/mnist/lenet_solver.prototxt --workers 2 --sync --json";

// Finds what is wrong with the prototxts before anything is started.
Result<void> check_files(const ClusterFlags& flags) {
  SPEEDO_ASSIGN(SolverFile file, load_solver(flags.solver));
  SPEEDO_TRY(SnapshotWriter(file.solver).check_writable());
  SPEEDO_TRY(inline_nets(file.solver, file.base));
  if (flags.batch) SPEEDO_TRY(set_effective_batch(*flags.batch, file.solver));
  return {};
}

}  // namespace

Result<int> run_command(const std::vector<std::string>& arguments) {
  CLI::App app("Train on a cluster of this machine: a private Redis, one master, N workers",
               "speedo run");
  ClusterFlags flags;
  std::string log_dir;
  add_cluster_flags(app, flags, ClusterRole::kRun);
  takes(app.add_option("--log-dir", log_dir,
                       "Folder for the workers' logs (default: a temporary one)"),
        "FOLDER")
      ->group("Other");
  app.footer(kFooter);
  SPEEDO_TRY(refuse_later_flags(arguments));
  std::vector<std::string> normalized;
  SPEEDO_ASSIGN(const Parsed parsed, parse(app, arguments, &normalized));
  if (parsed == Parsed::kDone) return 0;
  SPEEDO_TRY(check(flags));
  SPEEDO_ASSIGN(const WorkerRange workers, parse_workers(flags.workers));

  set_up_console(flags.debug);
  SPEEDO_TRY(check_files(flags));
  install_signal_handlers(SignalEffect::kSnapshotAndStop, SignalEffect::kSnapshotAndStop);
  LocalClusterOptions options;
  options.workers = workers.max;
  options.log_dir = log_dir;
  for (const std::string& flag : normalized) {
    if (!flag.starts_with("--log-dir=")) options.master_flags.push_back(flag);
  }
  return run_local_cluster(options);
}

}  // namespace speedo
