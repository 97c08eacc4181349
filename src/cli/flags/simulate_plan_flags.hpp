#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "cli/flags/compute_flags.hpp"

namespace speedo {

struct PlanFlags {
  std::string cluster;                  // a description; or
  bool calibrate = false;               // measure this machine with
  std::string solver;                   // this net
  ComputeFlags compute;                 // with these processors
  std::optional<double> measure_seconds;  // for so long each time
  std::string write;                    // and write the description here
  std::optional<std::uint64_t> shards;  // instead of the description's
  std::string codec;
  bool no_shared_memory = false;
  bool recommend = false, lossy = false;
  std::string strategy, workers;        // no workers: as many as --recommend finds best
  std::uint64_t iterations = 0, seed = 0;
  bool iterations_given = false;
  std::optional<double> moving_rate;
  bool gradient_only = false, replicated = false;
  std::string train;                    // a small net to train under the timing
  std::optional<double> loss;
  std::optional<std::uint64_t> test_interval;
  std::string svg;
  bool json = false, debug = false;
};

PlanFlags plan_flags(const OptionValues& values);
// Refuses flags that contradict each other. Error: kUsage.
Result<void> check(const PlanFlags& flags);

// Of a plan of so many workers. Without rounds each merge is one worker's: few of them are over
// while the last runs of most workers are still under way.
std::uint64_t merges_of(const PlanFlags& flags, bool in_rounds, std::uint64_t workers);

// "1,2,4" or "MIN:MAX", ascending, each once. Error: kUsage.
Result<std::vector<std::uint64_t>> parse_worker_counts(const std::string& text);

}  // namespace speedo
