#include "cli/make_schedule.hpp"

#include <vector>

#include "base/log.hpp"
#include "base/parse_number.hpp"
#include "cli/group_file.hpp"
#include "train/schedule_numbers.hpp"

namespace speedo {

namespace {

constexpr std::uint64_t kGroupsMax = 4096;

// A flag that stands for a schedule, or is a parameter of one.
struct Implied {
  std::string flag;  // as users write it
  const char* strategy;
};

// As " (speedo.toml:3:1)", of a flag that the command line does not give.
std::string origin(const ScheduleFlags& flags, const std::string& name) {
  const auto found = flags.origins.find(name);
  return found == flags.origins.end() ? "" : " (" + found->second + ")";
}

std::vector<Implied> implied_strategies(const ScheduleFlags& flags) {
  std::vector<Implied> all;
  const auto add = [&](const std::string& name, const char* strategy, const char* alias = "") {
    all.push_back({"--" + name + alias + origin(flags, name), strategy});
  };
  if (flags.sync) add("sync", "sync");
  if (flags.max_advance) add("max-advance", "partial-sync");
  if (flags.staleness) add("staleness", "ssp");
  if (flags.weedout) add("weedout", "weedout", " (--drop)");
  if (!flags.groups.empty()) add("groups", "grouping");
  if (flags.regroup_interval) add("regroup-interval", "grouping");
  return all;
}

bool same_schedule(std::string_view one, std::string_view other) {
  const StrategyEntry* first = find_strategy(one);
  const StrategyEntry* second = find_strategy(other);
  return first != nullptr && second != nullptr && first->make == second->make;
}

Error unknown_strategy(const std::string& name) {
  StrategyOptions options;
  options.name = name;
  const auto made = make_strategy(options);
  return usage_error("--strategy " + name + ": " + (made ? "unknown" : made.error().message));
}

// The way out that a command line has, if it is not what gives the switch.
std::string taken_back(const ScheduleFlags& flags) {
  const bool is_elsewhere = flags.sync && flags.origins.contains("sync");
  return is_elsewhere ? " (--sync=false takes the switch back)" : "";
}

// The schedule that all flags agree on.
Result<std::string> choose_strategy(const ScheduleFlags& flags) {
  if (flags.strategy == "hybrid") {
    return usage_error("--strategy hybrid: give its stages with --hybrid or --hybrid-file instead");
  }
  if (!flags.strategy.empty() && find_strategy(flags.strategy) == nullptr) {
    return unknown_strategy(flags.strategy);
  }
  const std::vector<Implied> implied = implied_strategies(flags);
  for (const Implied& each : implied) {
    if (!same_schedule(each.strategy, implied.front().strategy)) {
      return usage_error(
          fmt::format("{} is of the schedule {}, which {} contradicts ({}): give one of "
                      "them{}",
                      implied.front().flag, implied.front().strategy, each.flag, each.strategy,
                      taken_back(flags)));
    }
    if (!flags.strategy.empty() && !same_schedule(each.strategy, flags.strategy)) {
      const bool elastic = find_strategy(flags.strategy)->update.kind == UpdateKind::kElastic;
      const std::string name = each.strategy;
      return usage_error(fmt::format(
          "{} is of the schedule {}, so it contradicts --strategy {}{}: {}{}", each.flag, name,
          flags.strategy, origin(flags, "strategy"),
          elastic ? fmt::format("for both, --strategy {} --moving-rate A",
                                name == "sync" ? "sync-easgd" : name)
                  : "give one of them",
          taken_back(flags)));
    }
  }
  if (!flags.strategy.empty()) return std::string(find_strategy(flags.strategy)->name);
  if (!implied.empty()) return std::string(implied.front().strategy);
  // SpeeDO's moving rate makes its asynchronous schedule EASGD.
  return std::string(flags.moving_rate ? "easgd" : "async");
}

// Also one that is negative, or longer than any number can be.
bool is_whole_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

Result<void> set_groups(const ScheduleFlags& flags, StrategyOptions& options) {
  options.regroup_interval = flags.regroup_interval.value_or(0);
  if (flags.groups.empty() || flags.groups == "auto") return {};
  if (is_whole_number(flags.groups)) {
    const auto count = parse_number<std::uint64_t>(flags.groups);
    if (!count || *count < 1 || *count > kGroupsMax) {
      return usage_error(fmt::format("--groups {}: from 1 to {}", flags.groups, kGroupsMax));
    }
    options.group_count = *count;
    return {};
  }
  if (flags.regroup_interval) {
    return usage_error("--regroup-interval measures groups anew, but --groups " + flags.groups +
                       " gives them: give one of them");
  }
  SPEEDO_ASSIGN(options.groups, read_group_file(flags.groups));
  return {};
}

Result<StrategyOptions> strategy_options(const ScheduleFlags& flags) {
  StrategyOptions options;
  SPEEDO_ASSIGN(options.name, choose_strategy(flags));
  if (same_schedule(options.name, "partial-sync")) {
    options.max_advance = flags.max_advance.value_or(kUsualMaxAdvance);
  }
  if (same_schedule(options.name, "ssp")) {
    options.staleness = flags.staleness.value_or(kUsualStaleness);
  }
  if (same_schedule(options.name, "weedout")) options.window = flags.weedout.value_or(kUsualWindow);
  if (same_schedule(options.name, "grouping")) SPEEDO_TRY(set_groups(flags, options));
  return options;
}

// What the finished schedule does not show any more; the rest is check_schedule()'s.
Result<void> check_rule(const ScheduleFlags& flags, const std::string& strategy,
                        const UpdateSpec& spec) {
  if (strategy == "sync" && flags.moving_rate) {
    return usage_error(
        "--moving-rate has no meaning with --sync, where SpeeDO ignored it: leave it out, or give "
        "--strategy sync-easgd --moving-rate A for elastic averaging in rounds");
  }
  if (flags.gradient_only && flags.moving_rate) {
    return usage_error(
        "--moving-rate exchanges weights (elastic averaging), so --gradient-only "
        "contradicts it: leave one out");
  }
  if (flags.momentum && *flags.momentum >= 1.0) {
    return usage_error(fmt::format("--momentum {:g}: must be below 1, or updates grow without end",
                                   *flags.momentum));
  }
  if (!flags.elastic_side.empty() && !flags.moving_rate && !is_elastic(spec.kind)) {
    return usage_error(
        "--elastic-side concerns elastic averaging: add --moving-rate or --strategy "
        "easgd, or leave it out");
  }
  return {};
}

UpdaterState updater_of(const std::string& word) {
  if (word == "average") return UpdaterState::kAverage;
  return word == "reset" ? UpdaterState::kReset : UpdaterState::kKeep;
}

std::optional<float> as_float(const std::optional<double>& number) {
  if (!number) return std::nullopt;
  return static_cast<float>(*number);
}

Result<UpdateSpec> make_update(const ScheduleFlags& flags, const StrategyOptions& options,
                               std::uint64_t workers, FlagScope scope) {
  UpdateSpec spec = default_update(options, workers);
  SPEEDO_TRY(check_rule(flags, options.name, spec));
  if (flags.gradient_only) spec.kind = UpdateKind::kGradientOnly;
  if (flags.moving_rate) {
    if (!is_elastic(spec.kind)) {
      spec.kind = UpdateKind::kElastic;
      spec.updater = UpdaterState::kKeep;
    }
    spec.moving_rate = static_cast<float>(*flags.moving_rate);
  }
  if (flags.elastic_side == "master") spec.kind = UpdateKind::kElasticMaster;
  if (flags.train) spec.steps_per_run = *flags.train;
  if (!flags.save_updater.empty()) spec.updater = updater_of(flags.save_updater);
  // The lossless ones are taken where they are cheaper: factors, with --replicated.
  if (!flags.codec.empty() && flags.codec != "auto") {
    auto codec = parse_codec(flags.codec);
    if (!codec) {
      return usage_error(codec.error().message + "; or auto, for the cheapest that loses nothing");
    }
    spec.codec = *codec;
  }
  spec.error_feedback = !flags.no_error_feedback;
  spec.replicated = flags.replicated;
  spec.factors = !flags.no_factors;
  spec.factor = static_cast<float>(flags.factor.value_or(1.0));
  spec.skip = static_cast<float>(flags.skip.value_or(0.0));
  if (scope == FlagScope::kStage) {
    spec.base_lr = as_float(flags.lr);
    spec.momentum = as_float(flags.momentum);
    spec.weight_decay = as_float(flags.weight_decay);
  }
  return spec;
}

std::string describe(const StrategyOptions& options) {
  std::string text = options.name;
  if (options.max_advance > 0) text += fmt::format(", max advance {}", options.max_advance);
  if (same_schedule(options.name, "ssp")) text += fmt::format(", staleness {}", options.staleness);
  if (options.window > 0) text += fmt::format(", window {}", options.window);
  if (!options.groups.empty()) text += fmt::format(", {} groups", options.groups.size());
  if (options.group_count > 0) text += fmt::format(", {} groups, measured", options.group_count);
  return text;
}

std::string describe(const UpdateSpec& spec) {
  const std::string batches =
      fmt::format("{} mini-batch{}", spec.steps_per_run, spec.steps_per_run == 1 ? "" : "es");
  switch (spec.kind) {
    case UpdateKind::kGradientOnly:
      return "gradients of " + batches;
    case UpdateKind::kElastic:
    case UpdateKind::kElasticMaster:
      return fmt::format("elastic averaging every {} with moving rate {:g}{}", batches,
                         spec.moving_rate,
                         spec.kind == UpdateKind::kElasticMaster ? ", by the master" : "");
    case UpdateKind::kFullDelta:
      break;
  }
  std::string text = "full updates of " + batches;
  if (spec.updater == UpdaterState::kAverage) text += ", updaters averaged";
  if (spec.updater == UpdaterState::kReset) text += ", updaters reset";
  return text;
}

}  // namespace

Result<Schedule> make_schedule(const ScheduleFlags& flags, std::uint64_t workers, FlagScope scope) {
  Schedule schedule;
  SPEEDO_ASSIGN(schedule.strategy, strategy_options(flags));
  SPEEDO_ASSIGN(schedule.update, make_update(flags, schedule.strategy, workers, scope));
  schedule.weight_by_staleness = flags.staleness_weight;
  if (flags.lr_scaling == "linear") schedule.lr_scaling = LrScaling::kLinear;
  if (flags.lr_scaling == "sqrt") schedule.lr_scaling = LrScaling::kSqrt;
  schedule.lr_warmup = flags.lr_warmup.value_or(0);
  if (scope == FlagScope::kStage) {
    schedule.iterations = static_cast<std::uint64_t>(flags.max_iter.value_or(0));
    if (flags.test_interval) {
      schedule.test_interval = static_cast<std::uint64_t>(*flags.test_interval);
    }
  }
  SPEEDO_TRY(check_schedule(schedule));
  if (auto made = make_strategy(schedule.strategy); !made) {
    return usage_error("--strategy " + schedule.strategy.name + ": " + made.error().message);
  }
  return schedule;
}

std::string describe(const Schedule& schedule) {
  std::string text = describe(schedule.strategy) + "; " + describe(schedule.update);
  if (schedule.update.codec.kind != CodecKind::kNone) {
    text += "; coded as " + to_string(schedule.update.codec);
    if (!schedule.update.error_feedback) text += " without error feedback";
  }
  if (schedule.update.replicated) {
    text += schedule.update.factors ? "; replicated" : "; replicated, without factors";
  }
  if (schedule.weight_by_staleness) text += "; weighted by staleness";
  if (schedule.lr_scaling != LrScaling::kNone) {
    text += schedule.lr_scaling == LrScaling::kLinear ? "; learning rate times workers"
                                                      : "; learning rate times root of workers";
  }
  if (schedule.iterations > 0) text += fmt::format("; {} iterations", schedule.iterations);
  return text;
}

}  // namespace speedo
