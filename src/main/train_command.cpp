#include <memory>

#include <CLI/CLI.hpp>

#include <speedo/backend/backend.hpp>
#include <speedo/base/clock.hpp>
#include <speedo/core/solver.hpp>

#include "base/log.hpp"
#include "main/command_line.hpp"
#include "main/commands.hpp"
#include "main/compute_flags.hpp"
#include "main/console.hpp"
#include "main/flag_values.hpp"
#include "main/later_flags.hpp"
#include "main/memory_guard.hpp"
#include "main/net_inputs.hpp"
#include "main/parts.hpp"
#include "main/signals.hpp"
#include "main/snapshot.hpp"
#include "main/solver_file.hpp"
#include "main/train_reporter.hpp"

namespace speedo {

namespace {

struct TrainFlags {
  std::string solver, snapshot, weights, stage;
  std::int32_t level = 0;
  std::string sigint_effect, sighup_effect = "snapshot";
  SolverOverrides overrides;
  ComputeFlags compute;
  bool force = false;
  bool json = false, debug = false;
};

void add_flags(CLI::App& app, TrainFlags& flags) {
  const char* training = "Training";
  takes_file(app.add_option("--solver", flags.solver, "Solver prototxt"))
      ->required()
      ->group(training);
  takes_file(app.add_option("--snapshot", flags.snapshot, "Go on from this .solverstate"))
      ->group(training);
  takes_file(app.add_option("--weights", flags.weights,
                            "Start from these weights: .caffemodel files, comma-separated"))
      ->group(training);
  takes_count(app.add_option("--level", flags.level, "Network level (default 0)"), 0)
      ->group(training);
  takes(app.add_option("--stage", flags.stage, "Network stages, comma-separated"), "WORDS")
      ->group(training);
  const char* solver = "Solver (override the prototxt)";
  takes_count(app.add_option("--max-iter", flags.overrides.max_iter, "max_iter"), 0)->group(solver);
  takes_number(app.add_option("--lr", flags.overrides.lr, "base_lr"))->group(solver);
  takes_number(app.add_option("--momentum", flags.overrides.momentum, "momentum"))->group(solver);
  takes_number(app.add_option("--weight-decay", flags.overrides.weight_decay, "weight_decay"))
      ->group(solver);
  takes_count(app.add_option("--seed", flags.overrides.seed, "random_seed"), 0)->group(solver);
  add_compute_flags(app, flags.compute);
  add_force_flag(app, flags.force);
  const char* other = "Other";
  const std::vector<std::string> effects = {"stop", "snapshot", "none"};
  takes_one_of(app.add_option("--sigint-effect", flags.sigint_effect,
                              "What SIGINT does: stop, snapshot or none (default: snapshot and "
                              "stop)"),
               effects)
      ->group(other);
  takes_one_of(
      app.add_option("--sighup-effect", flags.sighup_effect, "What SIGHUP does (default snapshot)"),
      effects)
      ->group(other);
  app.add_flag("--json", flags.json, "Print the result as one JSON object on standard output")
      ->group(other);
  app.add_flag("--debug", flags.debug, "Log more")->group(other);
  app.footer(
      "A second SIGINT or SIGTERM ends at once.\n\n"
      "Example:\n"
      "  speedo train -solver examples/mnist/lenet_solver.prototxt");
}

void install_handlers(const TrainFlags& flags) {
  install_signal_handlers(flags.sigint_effect.empty() ? SignalEffect::kSnapshotAndStop
                                                      : signal_effect(flags.sigint_effect),
                          signal_effect(flags.sighup_effect));
}

void set_train_state(const TrainFlags& flags, caffe::SolverParameter& solver) {
  if (flags.level != 0) solver.mutable_train_state()->set_level(flags.level);
  for (const std::string& stage : split_at_commas(flags.stage)) {
    solver.mutable_train_state()->add_stage(stage);
  }
}

Result<void> set_start(const TrainFlags& flags, const caffe::SolverParameter& message,
                       Solver& solver) {
  if (!flags.snapshot.empty()) {
    SPEEDO_INFO("Resuming from {}", flags.snapshot);
    SPEEDO_ASSIGN(const SavedState saved, read_saved_state(flags.snapshot));
    return solver.restore(saved.state, saved.model);
  }
  std::vector<std::string> files = split_at_commas(flags.weights);
  if (files.empty()) files.assign(message.weights().begin(), message.weights().end());
  for (const std::string& file : files) {
    SPEEDO_INFO("Finetuning from {}", file);
    SPEEDO_ASSIGN(const caffe::NetParameter weights, read_weights(file));
    SPEEDO_TRY(solver.net().copy_weights_from(weights));
  }
  return {};
}

// The weights that training ended with, tested if the last test was of earlier ones.
Result<void> test_at_end(const caffe::SolverParameter& message, Solver& solver) {
  const bool tested = message.test_interval() > 0 &&
                      solver.iteration() % message.test_interval() == 0 &&
                      !solver.last_scores().empty();
  if (solver.test_nets().empty() || tested || solver.stopped()) return {};
  SPEEDO_TRY(solver.test_all());
  return {};
}

Result<int> train(const TrainFlags& flags) {
  SPEEDO_ASSIGN(SolverFile file, load_solver(flags.solver));
  warn_of_gpu_mode(file.solver, flags.solver);
  apply(flags.overrides, file.solver);
  set_train_state(flags, file.solver);
  if (!file.solver.has_max_iter()) {
    return Error{ErrorCode::kConfig,
                 "'" + flags.solver + "' has no max_iter: add it, or give --max-iter"};
  }
  SnapshotWriter snapshots(file.solver);
  SPEEDO_TRY(snapshots.check_writable());
  install_handlers(flags);

  SPEEDO_ASSIGN(const ComputeOptions compute, settle(flags.compute));
  const TrainerParts parts = trainer_parts(compute);
  SPEEDO_ASSIGN(const std::unique_ptr<Backend> backend, parts.make_backend());
  const std::unique_ptr<FeedFactory> feeds = parts.make_feeds();
  SPEEDO_INFO("Use CPU.");
  SPEEDO_INFO("Computing with {}", describe(compute));
  const SolverOptions options{
      .backend = backend.get(), .feeds = feeds.get(), .base = file.base};
  SPEEDO_ASSIGN(const MemoryForecast memory,
                admit_training(file.solver, options, {.force = flags.force}));
  TrainReporter reporter(file.solver.max_iter(), steady_clock());
  Solver::Hooks hooks;
  hooks.snapshot = [&](std::int64_t iteration, const caffe::NetParameter& model,
                       caffe::SolverState& state) {
    return snapshots.write(iteration, model, state);
  };
  hooks.poll = requested_action;
  hooks.progress = [&](std::int64_t iteration, float loss) { reporter.update(iteration, loss); };
  SPEEDO_ASSIGN(const std::unique_ptr<Solver> solver,
                Solver::create(file.solver, options, hooks));
  SPEEDO_TRY(set_start(flags, file.solver, *solver));

  SPEEDO_INFO("Starting Optimization");
  reporter.start(solver->iteration(), images_per_pass(solver->net()) * file.solver.iter_size());
  SPEEDO_TRY(solver->solve());
  SPEEDO_TRY(test_at_end(file.solver, *solver));
  SPEEDO_INFO("Optimization Done.");
  Report report = reporter.report(*solver, snapshots.last_model());
  report.predicted_memory_bytes = static_cast<std::uint64_t>(memory.total_bytes());
  add_peak_memory(report);
  if (const std::string phases = phases_text(report); !phases.empty()) SPEEDO_INFO("{}", phases);
  print(report, flags.json);
  return 0;
}

}  // namespace

Result<int> train_command(const std::vector<std::string>& arguments) {
  CLI::App app("Train or fine-tune a net in one process", "speedo train");
  TrainFlags flags;
  add_flags(app, flags);
  SPEEDO_TRY(refuse_later_flags(arguments));
  SPEEDO_ASSIGN(const Parsed parsed, parse(app, arguments));
  if (parsed == Parsed::kDone) return 0;
  if (!flags.snapshot.empty() && !flags.weights.empty()) {
    return Error{ErrorCode::kUsage,
                 "--snapshot and --weights contradict each other: a snapshot has its own weights"};
  }
  set_up_console(flags.debug);
  return train(flags);
}

}  // namespace speedo
