#include "cli/flags/simulate_plan_flags.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/parse_number.hpp"
#include "cli/flags/flag_values.hpp"
#include "cli/net_inputs.hpp"
#include "cli/worker_range.hpp"

namespace speedo {

namespace {

constexpr const char* kFooter =
    "Schedules are written NAME or NAME:N. N is the lead of partial-sync, the staleness of ssp,\n"
    "the window of weedout, the groups of grouping; of all others the mini-batches between\n"
    "exchanges. Sampled durations come from --seed: the same seed gives the same plan.\n"
    "Speed-ups are relative to one worker of the first machine without a cluster.\n"
    "Layers wait for their own weights, gradients go out while others are computed, rounds are\n"
    "merged ahead of order, as in training; who runs on a machine shares its cores.\n\n"
    "Examples:\n"
    "  speedo simulate --cluster examples/simulate/cluster.toml --workers 1:6 --svg plan.svg\n"
    "  speedo simulate --cluster cluster.toml --strategy sync,easgd,easgd:10 \\\n"
    "                  --train-net examples/digits/digits_solver.prototxt\n"
    "  speedo simulate --calibrate --solver examples/mnist/lenet_solver.prototxt \\\n"
    "                  --write here.toml";

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

void add_cluster_flags(CLI::App& app, PlanFlags& flags) {
  const char* group = "Cluster";
  takes_file(app.add_option("--cluster", flags.cluster, "Description of machines, network, net"))
      ->group(group);
  app.add_flag("--calibrate", flags.calibrate,
               "Measure --solver's net and a private Redis on this machine instead")
      ->group(group);
  takes_file(app.add_option("--solver", flags.solver, "Solver prototxt to calibrate with"))
      ->group(group);
  takes_file(app.add_option("--write", flags.write, "Write what was measured as a description"))
      ->group(group);
}

void add_training_flags(CLI::App& app, PlanFlags& flags) {
  const char* group = "Training";
  takes_file(app.add_option("--train-net,--train", flags.train,
                            "Train this solver's small net under the simulated timing: loss "
                            "against time"))
      ->group(group);
  takes_number(app.add_option("--loss", flags.loss,
                              "Of the test, to be reached (default: what one worker reaches in "
                              "--iterations)"))
      ->group(group);
  takes_count(app.add_option("--test-interval", flags.test_interval,
                             "Merges between tests (default: a thirtieth of --iterations)"),
              1)
      ->group(group);
}

}  // namespace

void add_plan_flags(CLI::App& app, PlanFlags& flags) {
  add_cluster_flags(app, flags);
  const char* plan = "Plan";
  takes(app.add_option("--strategy", flags.strategy, "all (default), or a list NAME[:N],..."),
        "LIST")
      ->group(plan);
  takes(app.add_option("--workers", flags.workers, "N,N,... or MIN:MAX (default 1,2,4)"), "LIST")
      ->group(plan);
  takes_count(app.add_option("--iterations", flags.iterations,
                             "Merges of each plan (default 300); with --train-net, of one worker"),
              1)
      ->group(plan);
  takes_number(app.add_option("--moving-rate", flags.moving_rate,
                              "Of elastic schedules (default 0.9 / workers)"))
      ->group(plan);
  app.add_flag("--gradient-only", flags.gradient_only,
               "Workers contribute gradients, and the master applies the solver's rule")
      ->group(plan);
  takes_count(app.add_option("--seed", flags.seed, "Of the drawn durations (default 1)"), 0)
      ->group(plan);
  add_training_flags(app, flags);
  add_compute_flags(app, flags.compute);
  const char* output = "Output";
  takes_file(app.add_option("--svg", flags.svg, "Write a chart of speed-up against workers"))
      ->group(output);
  app.add_flag("--json", flags.json, "Print the result as one JSON object on standard output")
      ->group(output);
  app.add_flag("--debug", flags.debug, "Log more")->group(output);
  app.footer(kFooter);
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
  if (flags.train.empty() && (flags.loss || flags.test_interval)) {
    return usage_error(
        "--loss and --test-interval belong to --train-net: give it, or leave them out");
  }
  return {};
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
