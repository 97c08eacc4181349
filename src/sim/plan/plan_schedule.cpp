#include "sim/plan/plan_schedule.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "train/schedule_numbers.hpp"

namespace speedo::sim {
namespace {

constexpr std::uint64_t kNumberMax = 1000000;

// What a schedule that cannot do without a number has if none is written.
std::optional<std::uint64_t> usual_number(const std::string& name) {
  if (name == "partial-sync") return kUsualMaxAdvance;
  if (name == "ssp") return kUsualStaleness;
  if (name == "weedout") return kUsualWindow;
  return std::nullopt;
}

Result<void> set_number(const std::string& name, std::uint64_t number, PlanSchedule& plan) {
  if (name == "partial-sync") {
    plan.strategy.max_advance = number;
  } else if (name == "ssp") {
    plan.strategy.staleness = number;
  } else if (name == "weedout") {
    plan.strategy.window = number;
  } else if (name == "grouping") {
    plan.strategy.group_count = number;
  } else if (number == 0) {
    return usage_error("schedule '" + plan.label + "': a run has at least one mini-batch");
  } else {
    plan.steps = static_cast<std::uint32_t>(number);
  }
  return {};
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

Result<PlanSchedule> parse_plan_schedule(const std::string& text) {
  const std::size_t colon = text.find(':');
  const StrategyEntry* entry = find_strategy(text.substr(0, colon));
  PlanSchedule plan;
  plan.label = text;
  plan.strategy.name = entry == nullptr ? text.substr(0, colon) : entry->name;
  std::optional<std::uint64_t> number = usual_number(plan.strategy.name);
  if (colon != std::string::npos) {
    const char* const end = text.data() + text.size();
    const auto [stop, code] = std::from_chars(text.data() + colon + 1, end, number.emplace(0));
    if (code != std::errc() || stop != end || *number > kNumberMax) {
      return usage_error(fmt::format("schedule '{}': after ':' comes a whole number up to {}", text,
                               kNumberMax));
    }
  }
  if (entry != nullptr && number) SPEEDO_TRY(set_number(entry->name, *number, plan));
  if (auto made = make_strategy(plan.strategy); !made) {
    return usage_error("schedule '" + text + "': " + made.error().message);
  }
  return plan;
}

Result<std::vector<PlanSchedule>> parse_plan_schedules(const std::string& text) {
  std::vector<std::string> names;
  if (text == "all") {
    for (const StrategyEntry& entry : strategy_registry()) names.emplace_back(entry.name);
  } else {
    names = split(text);
  }
  std::vector<PlanSchedule> plans;
  for (const std::string& name : names) {
    SPEEDO_ASSIGN(PlanSchedule plan, parse_plan_schedule(name));
    const bool twice =
        std::any_of(plans.begin(), plans.end(),
                    [&](const PlanSchedule& other) { return other.label == plan.label; });
    if (twice) return usage_error("schedule '" + name + "' is named twice");
    plans.push_back(std::move(plan));
  }
  return plans;
}

Result<Schedule> make_schedule(const PlanSchedule& plan, std::uint64_t workers,
                               std::optional<float> moving_rate, Contributes contributes) {
  Schedule schedule;
  schedule.strategy = plan.strategy;
  schedule.update = default_update(plan.strategy, workers);
  if (plan.steps) schedule.update.steps_per_run = *plan.steps;
  if (moving_rate && is_elastic(schedule.update.kind)) schedule.update.moving_rate = *moving_rate;
  if (contributes != Contributes::kDeltas) {
    if (schedule.update.kind != UpdateKind::kFullDelta || schedule.update.steps_per_run > 1) {
      return usage_error("schedule '" + plan.label +
                         "' has nothing to do with single gradients: leave it or --gradient-only "
                         "out");
    }
    schedule.update.kind = UpdateKind::kGradientOnly;
    schedule.update.replicated = contributes == Contributes::kReplicated;
  }
  SPEEDO_TRY(check_schedule(schedule));
  return schedule;
}

}  // namespace speedo::sim
