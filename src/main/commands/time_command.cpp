#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/base/random.hpp>
#include <speedo/core/solver.hpp>

#include "base/log.hpp"
#include "base/memory_limit.hpp"
#include "cli/flags/compute_flags.hpp"
#include "cli/flags/gpu_choice.hpp"
#include "cli/report/console.hpp"
#include "cli/flags/log_flags.hpp"
#include "cli/net_inputs.hpp"
#include "cli/signals.hpp"
#include "cli/solver_file.hpp"
#include "main/commands.hpp"
#include "main/parts.hpp"
#include "main/program_options.hpp"
#include "measure/gemm_rate.hpp"
#include "measure/step_timer.hpp"
#include "measure/time_report.hpp"

namespace speedo {

namespace {

struct TimeFlags {
  NetFlags net;
  ComputeFlags compute;
  std::string phase, solver;
  int iterations = 0;
  LogFlags log;
  bool train = false, json = false;
};

// The net, and with --training-steps how it is updated.
struct Subject {
  std::unique_ptr<Net> net;
  std::unique_ptr<UpdateRule> rule;
  int passes = 1;
};

TimeFlags time_flags(const OptionValues& values) {
  TimeFlags flags;
  flags.net = net_flags(values);
  flags.compute = compute_flags(values);
  values.get("phase", flags.phase);
  values.get("solver", flags.solver);
  values.get("iterations", flags.iterations);
  flags.log = log_flags(values);
  values.get("training-steps", flags.train);
  values.get("json", flags.json);
  return flags;
}

Result<Phase> check(TimeFlags& flags) {
  flags.train = flags.train || !flags.solver.empty();
  if (flags.net.model.empty() && flags.solver.empty()) {
    return Error{ErrorCode::kUsage, "give --model, or --solver for the net that it names"};
  }
  SPEEDO_ASSIGN(const Phase phase, parse_phase(flags.phase, Phase::kTrain));
  if (flags.train && phase == Phase::kTest) {
    return Error{ErrorCode::kUsage, "--phase TEST: training steps need the phase TRAIN"};
  }
  return phase;
}

// Small enough that no net of noise leaves the range of numbers within the steps of a measurement.
caffe::SolverParameter default_solver() {
  caffe::SolverParameter solver;
  solver.set_base_lr(1e-4F);
  solver.set_lr_policy("fixed");
  solver.set_momentum(0.9F);
  solver.set_weight_decay(5e-4F);
  return solver;
}

Result<SolverFile> read_solver(const TimeFlags& flags) {
  SolverFile file;
  file.solver = default_solver();
  if (!flags.solver.empty()) {
    SPEEDO_ASSIGN(file, load_solver(flags.solver));
  }
  caffe::SolverParameter& solver = file.solver;
  if (!flags.net.model.empty()) {
    solver.clear_net_param();
    solver.clear_train_net();
    solver.clear_train_net_param();
    solver.set_net(flags.net.model);
  }
  // Tests are no part of a step.
  solver.clear_test_net();
  solver.clear_test_net_param();
  solver.clear_test_iter();
  solver.clear_test_state();
  solver.clear_test_interval();
  if (solver.random_seed() < 0) solver.set_random_seed(0);
  apply(flags.net, solver);
  return file;
}

// What a net is made with. What it writes is measured, but not kept: nobody finishes it.
struct TimedWorld {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<FeedFactory> feeds;
  std::unique_ptr<SinkFactory> sinks;
};

Result<Subject> make_training(const TimeFlags& flags, const SolverFile& file,
                              const TimedWorld& world) {
  SolverOptions options;
  options.backend = world.backend.get();
  options.feeds = world.feeds.get();
  options.sinks = world.sinks.get();
  options.base = file.base;
  SPEEDO_ASSIGN(SolverNets nets, create_nets(file.solver, options));
  Subject subject;
  subject.net = std::move(nets.train);
  if (!flags.net.weights.empty()) SPEEDO_TRY(load_weights(flags.net.weights, *subject.net));
  SPEEDO_ASSIGN(subject.rule,
                UpdateRule::create(file.solver, subject.net->layout(), *world.backend));
  subject.passes = file.solver.iter_size();
  return subject;
}

Result<Subject> make_timed_net(const TimeFlags& flags, Phase phase, const TimedWorld& world) {
  NetOptions options;
  options.logs_set_up = true;
  options.backend = world.backend.get();
  options.feeds = world.feeds.get();
  options.sinks = world.sinks.get();
  Subject subject;
  SPEEDO_ASSIGN(subject.net, build_net(flags.net, phase, options));
  return subject;
}

// What a caller would provide. Blobs of one axis are labels, of which 0 is always one.
// The arrays that layers read as labels.
std::set<const void*> labels_of(const Net& net) {
  std::set<const void*> labels;
  for (const Net::LayerView& view : net.layers()) {
    for (std::size_t i = 1; i < view.bottoms.size(); ++i) {
      if (view.layer->allow_force_backward(static_cast<int>(i))) continue;
      labels.insert(view.bottoms[i]->data_identity());
    }
  }
  return labels;
}

void fill_inputs(Net& net) {
  Random random(0);
  const std::set<const void*> labels = labels_of(net);
  for (const Net::LayerView& view : net.layers()) {
    if (view.layer->type() != "Input") continue;
    for (Tensor* top : view.tops) {
      if (labels.count(top->data_identity()) > 0) continue;
      std::vector<float> noise(static_cast<std::size_t>(top->count()));
      for (float& value : noise) value = random.gaussian(0.0F, 1.0F);
      top->set_values(net.backend(), noise);
    }
  }
}

// So that the peak is the net's and not that of what was measured before it.
void forget_peak_memory() {
  std::ofstream file("/proc/self/clear_refs");
  if (!(file << "5" << std::flush)) SPEEDO_WARN("the peak of memory includes the start of the run");
}

Result<void> benchmark(StepTimer& timer, int iterations) {
  SPEEDO_INFO("Performing Forward");
  SPEEDO_ASSIGN(const float loss, timer.warm_up());
  SPEEDO_INFO("Initial loss: {:g}", loss);
  SPEEDO_INFO("Performing Backward");  // Caffe's order; warm_up() has done both.
  SPEEDO_INFO("*** Benchmark begins ***");
  SPEEDO_INFO("Testing for {} iterations.", iterations);
  while (timer.steps().size() < static_cast<std::size_t>(iterations) && !stop_requested()) {
    SPEEDO_TRY(timer.step());
    const StepTime& time = timer.steps().back();
    SPEEDO_INFO("Iteration: {} forward-backward time: {:g} ms.", timer.steps().size(),
                time.forward_total_ms + time.backward_total_ms);
  }
  if (timer.steps().empty()) {
    return Error{ErrorCode::kUnavailable, "stopped before the first iteration"};
  }
  return {};
}

Result<TimeReport> measure(const TimeFlags& flags, Phase phase) {
  ComputeFlags devices = flags.compute;
  std::optional<SolverFile> training;
  if (flags.train) {
    SPEEDO_ASSIGN(training, read_solver(flags));
    follow_solver_mode(training->solver, flags.solver, devices);
  }
  SPEEDO_ASSIGN(const ComputeOptions compute, settle(devices));
  const TrainerParts parts = trainer_parts(compute);
  SPEEDO_ASSIGN(std::unique_ptr<Backend> backend, parts.make_backend());
  const TimedWorld world{std::move(backend), parts.make_feeds(), make_sinks()};
  SPEEDO_INFO("{}", caffe_sentence(compute));
  SPEEDO_INFO("Computing with {}", describe(compute));
  SPEEDO_ASSIGN(const double sgemm_gflops, measure_gemm_rate(*world.backend));
  forget_peak_memory();

  SPEEDO_ASSIGN(const Subject subject, training ? make_training(flags, *training, world)
                                                : make_timed_net(flags, phase, world));
  fill_inputs(*subject.net);
  subject.net->set_batch_span({});
  StepTimer timer(*subject.net, {world.feeds.get(), subject.rule.get(), subject.passes});
  SPEEDO_TRY(benchmark(timer, flags.iterations));

  log_averages(*subject.net, timer.steps());
  TimeReport report = make_time_report(*subject.net, timer.steps(), subject.passes);
  report.compute = describe(compute);
  report.trains = flags.train;
  report.sgemm_gflops = sgemm_gflops;
  report.peak_memory_bytes = peak_resident_bytes();
  return report;
}

}  // namespace

Result<int> time_command(const CommandLine& line) {
  OptionValues values(Program::kTime);
  SPEEDO_ASSIGN(const Parsed parsed, read_program_options(line.arguments, values));
  if (parsed == Parsed::kDone) return 0;
  TimeFlags flags = time_flags(values);
  SPEEDO_ASSIGN(const Phase phase, check(flags));

  set_up_console(flags.log);
  install_signal_handlers(SignalEffect::kStop, SignalEffect::kStop);
  SPEEDO_ASSIGN(const TimeReport report, measure(flags, phase));
  std::fputs((flags.json ? to_json(report) + "\n" : to_text(report)).c_str(), stdout);
  return 0;
}

}  // namespace speedo
