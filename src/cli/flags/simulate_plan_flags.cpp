#include "cli/flags/simulate_plan_flags.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/parse_number.hpp"
#include "cli/net_inputs.hpp"
#include "cli/worker_range.hpp"

namespace speedo {

namespace {

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

}  // namespace

PlanFlags plan_flags(const OptionValues& values) {
  PlanFlags flags;
  values.get("cluster", flags.cluster);
  values.get("calibrate", flags.calibrate);
  values.get("solver", flags.solver);
  flags.compute = compute_flags(values);
  values.get("write", flags.write);
  values.get("shards", flags.shards);
  values.get("codec", flags.codec);
  values.get("no-shared-memory", flags.no_shared_memory);
  values.get("strategy", flags.strategy);
  values.get("workers", flags.workers);
  values.get("iterations", flags.iterations);
  values.get("seed", flags.seed);
  values.get("moving-rate", flags.moving_rate);
  values.get("gradient-only", flags.gradient_only);
  values.get("train-net", flags.train);
  values.get("loss", flags.loss);
  values.get("test-interval", flags.test_interval);
  values.get("svg", flags.svg);
  values.get("json", flags.json);
  values.get("debug", flags.debug);
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
