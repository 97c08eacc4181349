#include "cli/flags/simulate_plan_flags.hpp"

#include <algorithm>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "base/parse_number.hpp"
#include "cli/net_inputs.hpp"
#include "train/schedule_numbers.hpp"

namespace speedo {

namespace {

// As the option says: runs of every worker, of each plan that --recommend makes, and at least of
// one without rounds.
constexpr std::uint64_t kPlannedRuns = 12;
constexpr double kMeasureSecondsMin = 0.05, kMeasureSecondsMax = 3600.0;

Result<void> check_measure_seconds(const PlanFlags& flags) {
  if (!flags.measure_seconds) return {};
  if (!flags.calibrate) {
    return usage_error("--measure-seconds belongs to --calibrate, which measures: leave it out");
  }
  const double seconds = *flags.measure_seconds;
  if (seconds >= kMeasureSecondsMin && seconds <= kMeasureSecondsMax) return {};
  return usage_error(fmt::format("--measure-seconds {}: between {} and {}", seconds,
                                 kMeasureSecondsMin, kMeasureSecondsMax));
}

Result<void> check_recommend(const PlanFlags& flags) {
  if (!flags.recommend) {
    if (!flags.lossy) return {};
    return usage_error("--lossy belongs to --recommend: give it, or leave --lossy out");
  }
  if (!flags.train.empty()) {
    return usage_error(
        "--recommend compares by images a second, --train-net by loss: first let it recommend, "
        "then train under the schedules that it names");
  }
  if (!flags.svg.empty()) {
    return usage_error("--svg draws plans of given schedules: leave it or --recommend out");
  }
  if (flags.gradient_only || flags.replicated || flags.moving_rate) {
    return usage_error(
        "--recommend tries gradients as well, and the moving rate changes no time: leave "
        "--gradient-only, --replicated and --moving-rate out");
  }
  if (flags.lossy && !flags.codec.empty()) {
    return usage_error("--codec says which one, --lossy lets one be found: leave one of them out");
  }
  return {};
}

Result<std::uint64_t> parse_count(const std::string& part, const std::string& text) {
  const auto value = parse_number<std::uint64_t>(part);
  if (!value) {
    return usage_error("--workers takes numbers as 1,2,4 or MIN:MAX, not '" + text + "'");
  }
  if (*value < 1 || *value > kWorkersMax) {
    return usage_error(fmt::format("--workers {}: between 1 and {}", text, kWorkersMax));
  }
  return *value;
}

// Files and SPEEDO_ variables are for several programs: what they say, and means nothing here, is
// left aside. On the command line check() refuses it.
void leave_aside(const OptionValues& values, PlanFlags& flags) {
  const auto is_elsewhere = [&](std::string_view name) {
    return !values.origin_elsewhere(name).empty();
  };
  const auto keep_if = [&](bool means_something, std::string_view name, auto& variable) {
    if (!means_something && is_elsewhere(name)) variable = std::decay_t<decltype(variable)>();
  };
  keep_if(!flags.calibrate || is_elsewhere("calibrate"), "cluster", flags.cluster);
  keep_if(flags.cluster.empty() || is_elsewhere("cluster"), "calibrate", flags.calibrate);
  keep_if(flags.calibrate, "solver", flags.solver);
  keep_if(flags.calibrate, "threads", flags.compute.threads);
  keep_if(flags.calibrate, "measure-seconds", flags.measure_seconds);
  keep_if(flags.calibrate, "write", flags.write);

  const bool is_coded = !flags.codec.empty() && !is_elsewhere("codec");
  keep_if(flags.recommend && !is_coded, "lossy", flags.lossy);
  keep_if(!flags.lossy, "codec", flags.codec);
  keep_if(!flags.recommend, "train-net", flags.train);
  keep_if(!flags.recommend, "svg", flags.svg);
  keep_if(!flags.recommend, "moving-rate", flags.moving_rate);
  keep_if(!flags.recommend, "gradient-only", flags.gradient_only);
  keep_if(flags.gradient_only && flags.train.empty(), "replicated", flags.replicated);
  keep_if(!flags.train.empty(), "loss", flags.loss);
  keep_if(!flags.train.empty(), "test-interval", flags.test_interval);
}

}  // namespace

PlanFlags plan_flags(const OptionValues& values) {
  PlanFlags flags;
  values.get("cluster", flags.cluster);
  values.get("calibrate", flags.calibrate);
  values.get("solver", flags.solver);
  flags.compute = compute_flags(values);
  values.get("measure-seconds", flags.measure_seconds);
  values.get("write", flags.write);
  values.get("shards", flags.shards);
  values.get("codec", flags.codec);
  // What loses nothing; factors are --replicated's.
  if (flags.codec == "auto") flags.codec = "none";
  values.get("no-shared-memory", flags.no_shared_memory);
  values.get("recommend", flags.recommend);
  values.get("lossy", flags.lossy);
  values.get("strategy", flags.strategy);
  values.get("workers", flags.workers);
  values.get("iterations", flags.iterations);
  flags.iterations_given = values.given("iterations");
  values.get("seed", flags.seed);
  values.get("moving-rate", flags.moving_rate);
  values.get("gradient-only", flags.gradient_only);
  values.get("replicated", flags.replicated);
  values.get("train-net", flags.train);
  values.get("loss", flags.loss);
  values.get("test-interval", flags.test_interval);
  values.get("svg", flags.svg);
  if (flags.recommend && !values.given("workers")) flags.workers.clear();
  if (flags.recommend && !flags.iterations_given) flags.iterations = kPlannedRuns;
  values.get("json", flags.json);
  values.get("debug", flags.debug);
  leave_aside(values, flags);
  return flags;
}

Result<void> check(const PlanFlags& flags) {
  if (flags.calibrate && !flags.cluster.empty()) {
    return usage_error(
        "--calibrate measures this machine, --cluster describes another: give one of them");
  }
  if (!flags.calibrate && flags.cluster.empty()) {
    return usage_error("give --cluster FILE, or --calibrate --solver FILE");
  }
  if (flags.calibrate && flags.solver.empty()) {
    return usage_error("--calibrate measures a net: give its --solver");
  }
  if (!flags.calibrate && !flags.solver.empty()) {
    return usage_error(
        "--solver belongs to --calibrate; a small net to train is given by "
        "--train-net");
  }
  if (!flags.calibrate && flags.compute.threads > 0) {
    return usage_error(
        "--threads belongs to --calibrate, which measures with up to so many; a machine "
        "of --cluster has its cores in the file");
  }
  if (!flags.calibrate && !flags.write.empty()) {
    return usage_error(
        "--write belongs to --calibrate: the description given by --cluster is a file");
  }
  SPEEDO_TRY(check_measure_seconds(flags));
  if (flags.train.empty() && (flags.loss || flags.test_interval)) {
    return usage_error(
        "--loss and --test-interval belong to --train-net: give it, or leave them out");
  }
  if (flags.replicated && !flags.gradient_only) {
    return usage_error("--replicated is of --gradient-only: add it, or leave --replicated out");
  }
  if (flags.replicated && !flags.train.empty()) {
    return usage_error(
        "with --replicated a net learns what it learns by --gradient-only: leave --replicated or "
        "--train-net out");
  }
  return check_recommend(flags);
}

std::uint64_t merges_of(const PlanFlags& flags, bool in_rounds, std::uint64_t workers) {
  if (in_rounds || flags.iterations_given || !flags.train.empty()) return flags.iterations;
  return std::max(flags.iterations, kPlannedRuns * workers);
}

Result<std::vector<std::uint64_t>> parse_worker_counts(const std::string& text) {
  std::vector<std::uint64_t> counts;
  if (const std::size_t colon = text.find(':'); colon != std::string::npos) {
    SPEEDO_ASSIGN(const std::uint64_t min, parse_count(text.substr(0, colon), text));
    SPEEDO_ASSIGN(const std::uint64_t max, parse_count(text.substr(colon + 1), text));
    if (min > max) return usage_error("--workers " + text + ": MIN is greater than MAX");
    for (std::uint64_t count = min; count <= max; ++count) counts.push_back(count);
    return counts;
  }
  if (text.find(",,") != std::string::npos || text.ends_with(',')) {
    return usage_error("--workers " + text + ": a number is missing");
  }
  for (const std::string& part : split_at_commas(text)) {
    SPEEDO_ASSIGN(const std::uint64_t count, parse_count(part, text));
    counts.push_back(count);
  }
  if (counts.empty()) return usage_error("--workers is empty: give N,N,... or MIN:MAX");
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

}  // namespace speedo
