#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "cli/options/option_values.hpp"

namespace speedo {

// The flags of one schedule: those of the command line, or of one stage of a hybrid.
struct ScheduleFlags {
  // When results are merged.
  std::string strategy;  // empty: what the others imply, else async
  bool sync = false;
  std::optional<std::uint64_t> max_advance, staleness, weedout;
  std::string groups;    // a file, a number, or "auto"
  std::optional<std::uint64_t> regroup_interval;
  // By name, what gives those above that the job's command line does not: "speedo.toml:3:1".
  std::map<std::string, std::string> origins;

  // What a worker contributes.
  bool gradient_only = false;
  std::optional<std::uint32_t> train;
  std::optional<double> moving_rate;
  std::string elastic_side, save_updater, codec;
  bool no_error_feedback = false;
  bool replicated = false, no_factors = false;
  std::optional<double> factor, skip;

  // With what weight.
  bool staleness_weight = false;
  std::string lr_scaling;
  std::optional<std::uint64_t> lr_warmup;

  // On the command line they override the solver for the whole job, in a stage for the stage.
  std::optional<std::int64_t> max_iter, test_interval;
  std::optional<double> lr, momentum, weight_decay;
};

// Requires: the values are of a cluster or of a stage.
ScheduleFlags schedule_flags(const OptionValues& values);

enum class FlagScope {
  kJob,    // of a program
  kStage,  // of one stage of --hybrid or of a hybrid file
};

// A stage with what it leaves to the flags of the command line, which are every stage's defaults:
// its schedule, if it chooses none, and each flag of what is merged that it does not give. Of the
// solver's flags it takes none: those change the solver of all stages.
ScheduleFlags inherit(ScheduleFlags stage, const ScheduleFlags& job);

}  // namespace speedo
