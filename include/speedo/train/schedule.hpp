#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/train/strategy.hpp>
#include <speedo/train/update.hpp>

namespace speedo {

// How the learning rate follows the number of live workers: times 1, n or sqrt(n).
enum class LrScaling { kNone, kLinear, kSqrt };

// One stage of a job: when results are merged, what they are, with what weight. A job without
// --hybrid has one stage.
struct Schedule {
  StrategyOptions strategy;
  UpdateSpec update;
  // Every contribution is multiplied with 1/Y, Y = 1 + the updates merged since the weights that it
  // was computed from (MXNet-G).
  bool weight_by_staleness = false;
  LrScaling lr_scaling = LrScaling::kNone;
  std::uint64_t lr_warmup = 0;     // iterations over which the scale grows from 1
  // Of the stage, with those merged while the stage before came to its end; 0: to the end of the
  // job.
  std::uint64_t iterations = 0;
  std::optional<std::uint64_t> test_interval;  // instead of the job's, while the stage lasts
};

bool any_replicated(const std::vector<Schedule>& stages);
bool any_replicated(const std::vector<UpdateSpec>& stages);

// What each stage merges, in their order.
std::vector<UpdateSpec> updates_of(const std::vector<Schedule>& stages);

// The defaults that a schedule's name brings (registry), for the fields a user did not give:
// easgd: elastic with moving rate 0.9 / workers; averaging: 5 steps, updaters averaged; ...
UpdateSpec default_update(const StrategyOptions& strategy, std::uint64_t workers);

// Refuses what means nothing, with the reason and the remedy: a moving rate outside [0, 1],
// gradients with elastic averaging or several steps, a learning rate scaled by workers that do not
// work in rounds, a parameter of another strategy, ... Error: kUsage.
Result<void> check_schedule(const Schedule& schedule);

// The factor on the learning rate at `done` iterations into the stage with `workers` alive.
float lr_scale(const Schedule& schedule, std::uint64_t done, std::uint64_t workers);

}  // namespace speedo
