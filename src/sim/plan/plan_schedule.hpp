#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/train/schedule.hpp>

namespace speedo::sim {

// A schedule as a plan names it: NAME or NAME:N, where N is the schedule's own number: the lead of
// partial-sync, the staleness of ssp, the window of weedout, the groups of grouping, and the
// mini-batches of a run of all others.
struct PlanSchedule {
  std::string label;                   // as it was written
  StrategyOptions strategy;
  std::optional<std::uint32_t> steps;  // of a run; none: what the name stands for
};

// What workers contribute instead of the full deltas that a schedule may have: gradients, to which
// the master applies the rule, or gradients whose mean each worker applies itself.
enum class Contributes { kDeltas, kGradients, kReplicated };

// Error: kUsage for an unknown name or a number out of range.
Result<PlanSchedule> parse_plan_schedule(const std::string& text);
// A comma-separated list; "all" is every schedule there is, with its usual number. Each once.
Result<std::vector<PlanSchedule>> parse_plan_schedules(const std::string& text);

// With the defaults of its name for so many workers, and the moving rate if one is given.
// Error: kUsage from check_schedule().
Result<Schedule> make_schedule(const PlanSchedule& plan, std::uint64_t workers,
                               std::optional<float> moving_rate,
                               Contributes contributes = Contributes::kDeltas);

}  // namespace speedo::sim
