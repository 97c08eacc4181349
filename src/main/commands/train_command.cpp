#include <limits>
#include <memory>
#include <optional>

#include <speedo/backend/backend.hpp>
#include <speedo/base/clock.hpp>
#include <speedo/base/remote_files.hpp>
#include <speedo/core/solver.hpp>
#include <speedo/core/update_rule.hpp>
#include <speedo/train/training_id.hpp>

#include "base/log.hpp"
#include "base/trace.hpp"
#include "checkpoint/snapshot_room.hpp"
#include "checkpoint/train_checkpoints.hpp"
#include "cli/flags/cluster_flags.hpp"
#include "cli/flags/compute_flags.hpp"
#include "cli/flags/gpu_choice.hpp"
#include "cli/flags/log_flags.hpp"
#include "cli/flags/signal_flags.hpp"
#include "cli/net_inputs.hpp"
#include "cli/report/console.hpp"
#include "cli/report/curve_file.hpp"
#include "cli/report/curves.hpp"
#include "cli/report/train_reporter.hpp"
#include "cli/signals.hpp"
#include "cli/solver_file.hpp"
#include "core/weight_sources.hpp"
#include "data/parser/parser_processes.hpp"
#include "main/cluster_job.hpp"
#include "main/commands.hpp"
#include "main/parts.hpp"
#include "main/program_options.hpp"
#include "measure/memory_guard.hpp"

namespace speedo {

namespace {

struct TrainFlags {
  std::string solver, snapshot, weights;
  std::string resume;  // empty: no; "auto", or a .speedo file
  StateFlags state;
  SignalFlags signals;
  SolverOverrides overrides;
  std::optional<std::int64_t> batch;
  RotationRules rotation;
  NonFiniteFlags non_finite;
  std::string output_root;  // empty: anywhere
  ComputeFlags compute;
  LogFlags log;
  std::string tensorboard;  // a folder; empty: none
  std::string curve;        // a file; empty: none
  std::string trace;        // a file; empty: none
  bool force = false, json = false;
};

TrainFlags train_flags(const OptionValues& values) {
  TrainFlags flags;
  values.get("solver", flags.solver);
  values.get("snapshot", flags.snapshot);
  values.get("weights", flags.weights);
  values.get("resume", flags.resume);
  flags.state = state_flags(values);
  flags.signals = signal_flags(values);
  values.get("max-iter", flags.overrides.max_iter);
  values.get("test-interval", flags.overrides.test_interval);
  values.get("snapshot-interval", flags.overrides.snapshot_interval);
  values.get("lr", flags.overrides.lr);
  values.get("momentum", flags.overrides.momentum);
  values.get("weight-decay", flags.overrides.weight_decay);
  values.get("seed", flags.overrides.seed);
  values.get("batch", flags.batch);
  flags.rotation = rotation_flags(values);
  flags.non_finite = non_finite_flags(values);
  values.get("output-root", flags.output_root);
  flags.compute = compute_flags(values);
  flags.log = log_flags(values);
  values.get("tensorboard", flags.tensorboard);
  values.get("curve", flags.curve);
  values.get("trace-file", flags.trace);
  values.get("force", flags.force);
  values.get("json", flags.json);
  return flags;
}

// Which training is gone on with, if that is known, and how far its data are ahead of its
// iterations (TrainCheckpoints::begin).
struct Start {
  TrainingId training;
  std::uint64_t steps_ahead = 0;
};

Start go_on_at(std::uint64_t step, const TrainingId& training, Solver& solver) {
  solver.read_from_step(step);
  return {training, step - static_cast<std::uint64_t>(solver.iteration())};
}

// Where training begins.
Result<Start> set_start(const TrainFlags& flags, const caffe::SolverParameter& message,
                        const TrainCheckpoints& checkpoints, Solver& solver) {
  if (!flags.resume.empty()) {
    SPEEDO_ASSIGN(const std::optional<SavedCheckpoint> saved, checkpoints.find(flags.resume));
    if (saved) {
      SPEEDO_INFO("Resuming from iteration {}", saved->record.iteration());
      SPEEDO_TRY(solver.restore(saved->state, saved->model));
      return go_on_at(data_step_of(saved->record), training_of(saved->record), solver);
    }
    SPEEDO_INFO("--resume={}: there is no checkpoint to go on from; a new start", flags.resume);
  }
  if (!flags.snapshot.empty()) {
    SPEEDO_INFO("Resuming from {}", shown_name(flags.snapshot));
    SPEEDO_TRY(check_state_type(flags.snapshot, message.type()));
    SPEEDO_ASSIGN(const SavedState state, read_saved_state(flags.snapshot));
    SPEEDO_TRY(solver.restore(state.state, state.model));
    warn_if_not_finite(flags.snapshot, state.model, solver.net());
    const auto step = data_step_of_state(flags.snapshot);
    return step ? go_on_at(*step, {}, solver) : Start{};
  }
  const std::vector<std::string> files =
      split_at_commas(flags.weights.empty() ? weights_of(message) : flags.weights);
  WeightSources sources;
  for (const std::string& file : files) {
    SPEEDO_INFO("Finetuning from {}", shown_name(file));
    SPEEDO_ASSIGN(const caffe::NetParameter weights, read_weights(file));
    SPEEDO_TRY(sources.copy(file, weights, solver.net()));
    for (const auto& test : solver.test_nets()) SPEEDO_TRY(test->copy_weights_from(weights));
  }
  if (!files.empty()) SPEEDO_TRY(sources.check(solver.net(), true));
  return Start{};
}

Result<void> check_keep_best(const caffe::SolverParameter& solver) {
  const bool tested = solver.test_interval() > 0 && solver.snapshot() > 0 &&
                      solver.snapshot() % solver.test_interval() == 0;
  if (tested) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("--keep-best needs snapshots that are tested: make --snapshot-interval "
                           "({}) a multiple of --test-interval ({})",
                           solver.snapshot(), solver.test_interval())};
}

// Which may be written down in the net's own file.
Result<std::string> job_name_of(const SolverFile& file) {
  caffe::SolverParameter solver = file.solver;
  SPEEDO_TRY(inline_nets(solver, file.base));
  return default_job_name(solver);
}

// Of the training that the flags go on with, if a checkpoint has it.
Result<std::optional<std::int64_t>> earlier_seed(const TrainFlags& flags, const SolverFile& file) {
  if (flags.resume == kResumeNewest) {
    SPEEDO_ASSIGN(const std::string job, job_name_of(file));
    const auto seed = seed_of_newest(file.solver.snapshot_prefix(), job);
    if (seed) return seed;
  } else if (!flags.resume.empty()) {
    return seed_of_record(flags.resume);
  }
  return flags.snapshot.empty() ? std::optional<std::int64_t>() : seed_of_state(flags.snapshot);
}

// A seed that the solver lacks is that of the training that is gone on with, else its data would
// come in another order; else one is drawn. Either is logged.
Result<void> set_seed(const TrainFlags& flags, SolverFile& file) {
  if (file.solver.random_seed() >= 0) return {};
  SPEEDO_ASSIGN(const std::optional<std::int64_t> seed, earlier_seed(flags, file));
  if (seed) {
    file.solver.set_random_seed(*seed);
    SPEEDO_INFO("random_seed: {}", *seed);
  }
  settle_seed(file.solver);
  return {};
}

// The solver that the flags and the prototxt come to.
Result<SolverFile> read_solver(const TrainFlags& flags) {
  SPEEDO_ASSIGN(SolverFile file, load_solver(flags.solver));
  apply(flags.overrides, file.solver);
  apply(flags.state, file.solver);
  if (!file.solver.has_max_iter()) {
    return Error{ErrorCode::kConfig,
                 "'" + shown_name(flags.solver) + "' has no max_iter: add it, or give --max-iter"};
  }
  if (flags.batch) {
    SPEEDO_ASSIGN(file.base, inline_nets(file.solver, file.base));
    SPEEDO_TRY(set_effective_batch(*flags.batch, file.solver));
  }
  SPEEDO_TRY(set_seed(flags, file));
  if (flags.rotation.keep_best) SPEEDO_TRY(check_keep_best(file.solver));
  return file;
}

// The curves that a training draws, in both forms.
struct Drawing {
  const caffe::SolverParameter& solver;
  Curves& curves;
  CurveFile& file;

  void add(const Solver& running, std::int64_t iteration, float loss) const {
    const auto at = static_cast<std::uint64_t>(iteration);
    curves.add(at, {{"loss", loss}});
    if (!file.is_due(at)) return;
    const auto rate = learning_rate(solver, iteration);
    file.add({.iteration = at,
              .loss = running.smoothed_loss(),
              .rate = rate ? *rate : std::numeric_limits<float>::quiet_NaN()});
  }
  void add_tests(const Solver& running) const {
    const auto at = static_cast<std::uint64_t>(running.tested_iteration());
    curves.add_tests(at, running.last_scores());
    const TestScores& first = running.last_scores().front();
    file.add_test(at, first.accuracy, first.loss);
  }
};

// `solver` is set once it is there, before it runs.
Solver::Hooks make_hooks(TrainCheckpoints& checkpoints, TrainReporter& reporter,
                         const Drawing& drawing, const Solver* const& solver) {
  Solver::Hooks hooks;
  hooks.snapshot = [&](std::int64_t iteration, const caffe::NetParameter& model,
                       caffe::SolverState& state) {
    return checkpoints.write(iteration, model, state);
  };
  hooks.poll = requested_action;
  hooks.progress = [&](std::int64_t iteration, float loss) {
    reporter.update(iteration, loss);
    if (checkpoints.look_at_tests(*solver)) drawing.add_tests(*solver);
    drawing.add(*solver, iteration, loss);
  };
  return hooks;
}

// The room that the snapshots of this training need, from iteration `first` on.
Result<void> check_room(const TrainFlags& flags, const caffe::SolverParameter& solver,
                        std::int64_t weight_bytes, std::int64_t first) {
  SPEEDO_ASSIGN(const std::int64_t bytes, snapshot_bytes(weight_bytes, solver));
  return check_snapshot_room(
      solver.snapshot_prefix(),
      {.bytes = bytes,
       .count =
           snapshots_at_once(first, solver.max_iter(), solver.snapshot(), flags.rotation)});
}

// To the last iteration, and what follows it.
Result<void> train_to_end(TrainCheckpoints& checkpoints, TrainReporter& reporter,
                          const Drawing& drawing, std::int64_t images_per_iteration,
                          Solver& solver) {
  SPEEDO_INFO("Starting Optimization");
  reporter.start(solver.iteration(), images_per_iteration);
  drawing.file.begin(static_cast<std::uint64_t>(solver.iteration()));
  if (const auto from = static_cast<std::uint64_t>(solver.iteration()); from > 0) {
    drawing.curves.go_on(from);
  }
  SPEEDO_TRY(solver.solve());
  if (checkpoints.look_at_tests(solver)) drawing.add_tests(solver);
  if (auto failure = checkpoints.failure_at(solver.iteration())) return *std::move(failure);
  SPEEDO_INFO("Optimization Done.");
  return {};
}

Result<int> train(const TrainFlags& flags) {
  install_signal_handlers(flags.signals);
  SPEEDO_ASSIGN(const std::unique_ptr<OutputRoot> outputs, confine_outputs(flags.output_root));
  SPEEDO_ASSIGN(const SolverFile file, read_solver(flags));
  TrainCheckpoints checkpoints(file.solver, flags.rotation,
                               [] { return stop_requested().has_value(); });
  SPEEDO_TRY(checkpoints.check_writable());

  ComputeFlags devices = flags.compute;
  follow_solver_mode(file.solver, flags.solver, devices);
  SPEEDO_ASSIGN(const ComputeOptions compute, settle(devices));
  const TrainerParts parts = trainer_parts(compute);
  SPEEDO_ASSIGN(const std::unique_ptr<Backend> backend, parts.make_backend());
  const std::unique_ptr<FeedFactory> feeds = parts.make_feeds();
  const std::unique_ptr<SinkFactory> sinks = make_sinks();
  SPEEDO_INFO("{}", compute.gpu ? fmt::format("Using GPUs {}", compute.gpu->index)
                                : caffe_sentence(compute));
  SPEEDO_INFO("Computing with {}", describe(compute));
  const SolverOptions options{.backend = backend.get(),
                              .feeds = feeds.get(),
                              .sinks = sinks.get(),
                              .base = file.base,
                              .logs_set_up = true,
                              .test_at_end = true,
                              .non_finite_max = static_cast<int>(flags.non_finite.max)};
  SPEEDO_ASSIGN(const MemoryForecast memory,
                admit_training(file.solver, options, memory_policy(compute, flags.force)));
  SPEEDO_ASSIGN(const std::unique_ptr<Curves> curves, Curves::create(flags.tensorboard));
  SPEEDO_ASSIGN(const std::unique_ptr<CurveFile> curve,
                CurveFile::create(curve_options(flags.curve, file.solver)));
  const Drawing drawing{file.solver, *curves, *curve};
  SPEEDO_ASSIGN(const std::unique_ptr<Trace> trace, Trace::start(flags.trace, "speedo train"));
  TrainReporter reporter(file.solver.max_iter(), steady_clock());
  const Solver* running = nullptr;
  SPEEDO_ASSIGN(
      const std::unique_ptr<Solver> solver,
      Solver::create(file.solver, options, make_hooks(checkpoints, reporter, drawing, running)));
  running = solver.get();
  checkpoints.set_owner({job_name(solver->net().name()), solver->net().layout().digest(),
                         file.solver.type()});
  SPEEDO_ASSIGN(const Start start, set_start(flags, file.solver, checkpoints, *solver));
  SPEEDO_TRY(check_room(flags, file.solver, memory.weight_bytes, solver->iteration()));
  SPEEDO_TRY(checkpoints.begin(start.training, start.steps_ahead));

  SPEEDO_TRY(train_to_end(checkpoints, reporter, drawing,
                          images_per_pass(solver->net()) * file.solver.iter_size(), *solver));
  Report report = reporter.report(*solver, checkpoints.last_model());
  report.skipped_records = static_cast<std::uint64_t>(feeds->totals().skipped_records);
  report.parser_deaths = static_cast<std::uint64_t>(parser_totals().died);
  report.predicted_memory_bytes = static_cast<std::uint64_t>(memory.bytes_in(MemoryKind::kHost));
  add_peak_memory(report);
  if (const std::string phases = phases_text(report); !phases.empty()) SPEEDO_INFO("{}", phases);
  print(report, flags.json);
  return 0;
}

// Flags that contradict each other, and values that --resume does not take.
Result<void> check(const TrainFlags& flags) {
  SPEEDO_TRY(check_start_sources(flags.resume, flags.snapshot, flags.weights));
  if (!flags.resume.empty() && flags.resume != kResumeNewest &&
      !flags.resume.ends_with(".speedo")) {
    return Error{ErrorCode::kUsage,
                 "--resume takes =auto or =FILE.speedo (a .solverstate is given with --snapshot)"};
  }
  return check(flags.rotation);
}

}  // namespace

Result<int> train_command(const CommandLine& line) {
  OptionValues values(Program::kTrain);
  SPEEDO_ASSIGN(const Parsed parsed, read_program_options(line.arguments, values));
  if (parsed == Parsed::kDone) return 0;
  const TrainFlags flags = train_flags(values);
  SPEEDO_TRY(check(flags));
  set_up_console(flags.log);
  return train(flags);
}

}  // namespace speedo
