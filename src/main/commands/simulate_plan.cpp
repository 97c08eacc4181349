#include "main/commands/simulate_plan.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include <speedo/base/clock.hpp>
#include <speedo/base/file.hpp>
#include <speedo/core/solver.hpp>
#include <speedo/cpu/cpu_options.hpp>

#include "base/log.hpp"
#include "cli/report/console.hpp"
#include "cli/flags/simulate_plan_flags.hpp"
#include "cli/solver_file.hpp"
#include "core/prototxt.hpp"
#include "main/parts.hpp"
#include "main/program_options.hpp"
#include "measure/calibrate/simulate_calibrate.hpp"
#include "measure/simulate/simulate_plan_chart.hpp"
#include "measure/simulate/simulate_plan_file.hpp"
#include "measure/simulate/simulate_plan_report.hpp"
#include "measure/simulate/simulate_recommend_report.hpp"
#include "sim/plan/cost_exchange.hpp"
#include "sim/plan/plan_schedule.hpp"
#include "sim/plan/plan_train.hpp"
#include "train/note_text.hpp"

namespace speedo {

namespace {

// Tests of a trained net on its way, of one worker.
constexpr std::uint64_t kTestsOfTraining = 30;
// A schedule that needs more merges than this many times one worker's is not fast.
constexpr std::uint64_t kPatience = 4;
// Between lines about the search for what to recommend.
constexpr std::chrono::milliseconds kLiveLinePause{200}, kLinePause{5000};

// A job as a master would send it, with a seed that every plan shares.
Result<JobSpec> job_of(const std::string& path, std::uint64_t seed) {
  SPEEDO_ASSIGN(SolverFile file, load_solver(path));
  SPEEDO_ASSIGN(const std::filesystem::path base, inline_nets(file.solver, file.base));
  const bool has_seed = file.solver.has_random_seed() && file.solver.random_seed() >= 0;
  if (!has_seed) file.solver.set_random_seed(static_cast<std::int64_t>(seed));
  JobSpec job;
  std::error_code code;
  job.solver_text = to_prototxt(file.solver);
  job.base = std::filesystem::absolute(base, code).string();
  return job;
}

Result<sim::ClusterCosts> calibrated(const PlanFlags& flags, const ComputeOptions& compute,
                                     std::string& measured) {
  CalibrateOptions options;
  SPEEDO_ASSIGN(options.job, job_of(flags.solver, flags.seed));
  options.parts = {[](const ComputeOptions& each) { return trainer_parts(each); }, store_opener()};
  options.title = "This machine, " + flags.solver;
  options.compute = compute;
  if (flags.measure_seconds) options.seconds_per_measurement = *flags.measure_seconds;
  SPEEDO_INFO("Measuring {} here; other work on this machine disturbs it", flags.solver);
  SPEEDO_ASSIGN(const Calibration calibration, calibrate(options));
  measured = to_text(calibration);
  for (const std::string& doubt : calibration.doubts) SPEEDO_WARN("{}", doubt);
  if (!flags.write.empty()) {
    SPEEDO_TRY(write_file_atomically(
        flags.write,
        to_toml(calibration.cluster, "Measured by " + version() + " simulate --calibrate")));
    SPEEDO_INFO("The description is in {}", flags.write);
  }
  return calibration.cluster;
}

// What the flags say of the exchange holds before what the description does.
Result<void> set_exchange(const PlanFlags& flags, sim::ClusterCosts& cluster) {
  if (flags.shards) {
    cluster.store.shards = *flags.shards;
    if (*flags.shards > 0) cluster.store.servers = 1;
  }
  if (flags.replicated) cluster.store.copies = false;  // of steps there are none
  if (!flags.codec.empty()) cluster.worker.codec = flags.codec;
  if (flags.no_shared_memory || flags.replicated) cluster.worker.shares_memory = false;
  if (auto checked = sim::check(cluster); !checked) return usage_error(checked.error().message);
  return {};
}

sim::Contributes contributes_of(const PlanFlags& flags) {
  if (flags.replicated) return sim::Contributes::kReplicated;
  return flags.gradient_only ? sim::Contributes::kGradients : sim::Contributes::kDeltas;
}

Result<void> check_moving_rate(const PlanFlags& flags,
                               const std::vector<sim::PlanSchedule>& schedules) {
  const bool used = std::any_of(schedules.begin(), schedules.end(), [](const auto& schedule) {
    return is_elastic(default_update(schedule.strategy, 1).kind);
  });
  if (!flags.moving_rate || used) return {};
  return Error{ErrorCode::kUsage, "--moving-rate is of elastic schedules, but --strategy " +
                                      flags.strategy + " has none: add easgd, or leave it out"};
}

class PlanCommand {
 public:
  PlanCommand(const PlanFlags& flags, const ComputeOptions& compute,
              std::vector<sim::PlanSchedule> schedules, std::vector<std::uint64_t> workers)
      : flags_(flags),
        compute_(compute),
        schedules_(std::move(schedules)),
        workers_(std::move(workers)) {}

  Result<PlanReport> run(const sim::ClusterCosts& cluster) {
    report_.cluster = cluster;
    report_.seed = flags_.seed;
    if (!flags_.train.empty()) SPEEDO_TRY(train_alone());
    for (const sim::PlanSchedule& schedule : schedules_) {
      for (const std::uint64_t workers : workers_) SPEEDO_TRY(add_row(schedule, workers));
    }
    return std::move(report_);
  }

 private:
  sim::PlanOptions options_for(const Schedule& schedule, std::uint64_t workers) const;
  Result<sim::PlanResult> plan_one(const sim::ClusterCosts& cluster,
                                   const sim::PlanOptions& options) const;
  Result<void> train_alone();
  Result<Schedule> make_possible(const sim::PlanSchedule& schedule, std::uint64_t workers) const;
  Result<void> add_row(const sim::PlanSchedule& schedule, std::uint64_t workers);

  const PlanFlags& flags_;
  const ComputeOptions compute_;
  const std::vector<sim::PlanSchedule> schedules_;
  const std::vector<std::uint64_t> workers_;
  std::optional<JobSpec> job_;  // with --train-net
  PlanReport report_;
};

sim::PlanOptions PlanCommand::options_for(const Schedule& schedule, std::uint64_t workers) const {
  sim::PlanOptions options;
  options.schedule = schedule;
  options.workers = workers;
  const bool in_rounds = find_strategy(schedule.strategy.name)->rounds;
  options.iterations = merges_of(flags_, in_rounds, workers);
  options.seed = flags_.seed;
  if (!job_) return options;
  options.test_interval =
      flags_.test_interval.value_or(std::max<std::uint64_t>(1, flags_.iterations /
                                                                   kTestsOfTraining));
  return options;
}

Result<sim::PlanResult> PlanCommand::plan_one(const sim::ClusterCosts& cluster,
                                              const sim::PlanOptions& options) const {
  if (!job_) return sim::plan(cluster, options);
  sim::TrainedNetOptions net_options;
  net_options.job = *job_;
  net_options.schedule = options.schedule;
  net_options.workers = options.workers;
  net_options.samples = cluster.net.batch * options.schedule.update.steps_per_run;
  SPEEDO_ASSIGN(const std::unique_ptr<sim::PlanNet> net,
                sim::make_trained_net(trainer_parts(compute_), net_options));
  return sim::plan(cluster, options, *net);
}

// What the schedules are compared with: one worker's way without a cluster.
Result<void> PlanCommand::train_alone() {
  SPEEDO_ASSIGN(job_, job_of(flags_.train, flags_.seed));
  SPEEDO_ASSIGN(const sim::PlanResult alone, plan_one(sim::without_cluster(report_.cluster),
                                                      options_for(Schedule{}, 1)));
  PlanBaseline baseline;
  baseline.curve = alone.curve;
  baseline.loss = flags_.loss.value_or(static_cast<double>(alone.curve.back().loss));
  const auto seconds = sim::seconds_to_loss(alone.curve, baseline.loss);
  if (!seconds) {
    return Error{ErrorCode::kUsage,
                 fmt::format("--loss {:g}: one worker only reaches {:g} in {} iterations; give "
                             "more --iterations",
                             baseline.loss, alone.curve.back().loss, flags_.iterations)};
  }
  baseline.seconds = *seconds;
  SPEEDO_INFO("One worker without a cluster: loss {:g} after {:.4g} s", baseline.loss, *seconds);
  report_.baseline = std::move(baseline);
  return {};
}

// Error: why it cannot be planned with this exchange.
Result<Schedule> PlanCommand::make_possible(const sim::PlanSchedule& schedule,
                                            std::uint64_t workers) const {
  std::optional<float> moving_rate;
  if (flags_.moving_rate) moving_rate = static_cast<float>(*flags_.moving_rate);
  SPEEDO_ASSIGN(Schedule made,
                sim::make_schedule(schedule, workers, moving_rate, contributes_of(flags_)));
  SPEEDO_ASSIGN(made.update.codec, parse_codec(report_.cluster.worker.codec));
  SPEEDO_TRY(check_schedule(made));
  SPEEDO_TRY(sim::check_exchange(report_.cluster, made.update));
  return made;
}

Result<void> PlanCommand::add_row(const sim::PlanSchedule& schedule, std::uint64_t workers) {
  const auto made = make_possible(schedule, workers);
  if (!made && flags_.strategy == "all") {
    SPEEDO_INFO("{} is left out: {}", schedule.label, made.error().message);
    return {};
  }
  if (!made) return made.error();
  sim::PlanOptions options = options_for(*made, workers);
  if (report_.baseline) {
    options.stop_at_loss = report_.baseline->loss;
    options.iterations *= kPatience;
  }
  PlanRow row;
  row.schedule = schedule.label;
  row.workers = workers;
  SPEEDO_ASSIGN(row.result, plan_one(report_.cluster, options));
  if (report_.baseline) {
    row.seconds_to_loss = sim::seconds_to_loss(row.result.curve, report_.baseline->loss);
    if (row.seconds_to_loss && *row.seconds_to_loss > 0.0) {
      row.speed_up_to_loss = report_.baseline->seconds / *row.seconds_to_loss;
    }
    SPEEDO_INFO("{}, {}: {}", schedule.label, count_workers(workers),
                row.seconds_to_loss ? fmt::format("{:.4g} s", *row.seconds_to_loss)
                                    : "does not reach the loss");
  }
  report_.rows.push_back(std::move(row));
  return {};
}

// On a terminal a live line, else a line now and then.
class SearchReport {
 public:
  void operator()(const sim::RecommendProgress& progress) {
    const Instant now = steady_clock().now();
    if (now - told_at_ < (has_live_line() ? kLiveLinePause : kLinePause)) return;
    told_at_ = now;
    const std::string text = progress_line(progress);
    if (has_live_line()) return show_live_line(text);
    std::fprintf(stderr, "%s\n", text.c_str());
  }

 private:
  Instant told_at_ = steady_clock().now();
};

Result<RecommendReport> recommend(const PlanFlags& flags, const sim::ClusterCosts& cluster) {
  RecommendReport report;
  report.cluster = cluster;
  report.options.seed = flags.seed;
  report.options.rounds = flags.iterations;
  sim::SpaceOptions& space = report.options.space;
  if (flags.strategy != "all") {
    SPEEDO_ASSIGN(space.schedules, sim::parse_plan_schedules(flags.strategy));
  }
  if (!flags.workers.empty()) {
    SPEEDO_ASSIGN(space.workers, parse_worker_counts(flags.workers));
  }
  space.shards = flags.shards;
  space.codec = flags.codec;
  space.lossy = flags.lossy;
  SPEEDO_INFO("Planning what may be the best: seconds to minutes");
  sim::RecommendOptions options = report.options;
  options.threads = static_cast<std::size_t>(default_threads());
  SearchReport search;
  options.on_planned = [&search](const sim::RecommendProgress& progress) { search(progress); };
  auto found = sim::recommend(cluster, options);
  clear_live_line();
  if (!found) return found.error();
  report.found = *std::move(found);
  return report;
}

void print(const PlanFlags& flags, const std::string& measured, const std::string& json,
           const std::string& text) {
  if (flags.json) {
    std::fprintf(stderr, "%s", measured.c_str());
    std::printf("%s\n", json.c_str());
  } else {
    std::printf("%s%s%s", measured.c_str(), measured.empty() ? "" : "\n", text.c_str());
  }
}

}  // namespace

Result<int> simulate_plan(const std::vector<std::string>& arguments) {
  OptionValues values(Program::kPlan);
  SPEEDO_ASSIGN(const Parsed parsed, read_program_options(arguments, values));
  if (parsed == Parsed::kDone) return 0;
  const PlanFlags flags = plan_flags(values);
  SPEEDO_TRY(check(flags));
  SPEEDO_ASSIGN(std::vector<sim::PlanSchedule> schedules,
                sim::parse_plan_schedules(flags.strategy));
  // A file's is for other programs, too.
  if (values.origin_elsewhere("moving-rate").empty()) {
    SPEEDO_TRY(check_moving_rate(flags, schedules));
  }
  std::vector<std::uint64_t> workers;
  if (!flags.workers.empty()) {
    SPEEDO_ASSIGN(workers, parse_worker_counts(flags.workers));
  }

  set_up_console(flags.debug);
  SPEEDO_ASSIGN(const ComputeOptions compute, settle(flags.compute));
  std::string measured;
  SPEEDO_ASSIGN(sim::ClusterCosts cluster, flags.calibrate
                                                     ? calibrated(flags, compute, measured)
                                                     : read_cluster(flags.cluster));
  SPEEDO_TRY(set_exchange(flags, cluster));
  if (flags.recommend) {
    SPEEDO_ASSIGN(const RecommendReport report, recommend(flags, cluster));
    print(flags, measured, to_json(report), to_text(report));
    return 0;
  }
  PlanCommand command(flags, compute, std::move(schedules), std::move(workers));
  SPEEDO_ASSIGN(const PlanReport report, command.run(cluster));
  if (!flags.svg.empty()) SPEEDO_TRY(write_file_atomically(flags.svg, to_svg(report)));
  print(flags, measured, to_json(report), to_table(report));
  return 0;
}

}  // namespace speedo
