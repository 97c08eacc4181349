#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "cli/flags/compute_flags.hpp"

namespace CLI {
class App;
}

namespace speedo {

struct PlanFlags {
  std::string cluster;                  // a description; or
  bool calibrate = false;               // measure this machine with
  std::string solver;                   // this net
  ComputeFlags compute;                 // with these processors
  std::string write;                    // and write the description here
  std::string strategy = "all";
  std::string workers = "1,2,4";
  std::uint64_t iterations = 300;
  std::uint64_t seed = 1;
  std::optional<double> moving_rate;
  bool gradient_only = false;
  std::string train;                    // a small net to train under the timing
  std::optional<double> loss;
  std::optional<std::uint64_t> test_interval;
  std::string svg;
  bool json = false, debug = false;
};

void add_plan_flags(CLI::App& app, PlanFlags& flags);
// Refuses flags that contradict each other. Error: kUsage.
Result<void> check(const PlanFlags& flags);

// "1,2,4" or "MIN:MAX", ascending, each once. Error: kUsage.
Result<std::vector<std::uint64_t>> parse_worker_counts(const std::string& text);

}  // namespace speedo
