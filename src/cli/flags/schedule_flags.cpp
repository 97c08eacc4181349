#include "cli/flags/schedule_flags.hpp"

#include <speedo/train/strategy.hpp>

namespace speedo {

namespace {

template <class T>
void take_over(std::optional<T>& mine, const std::optional<T>& theirs) {
  if (!mine) mine = theirs;
}

void take_over(std::string& mine, const std::string& theirs) {
  if (mine.empty()) mine = theirs;
}

// Whether they say when results are merged.
bool chooses_schedule(const ScheduleFlags& flags) {
  return !flags.strategy.empty() || flags.sync || flags.max_advance || flags.staleness ||
         flags.weedout || !flags.groups.empty() || flags.regroup_interval;
}

// Whether elastic averaging goes with the schedule that they choose: SpeeDO ignored it in rounds,
// where only schedules that are elastic by themselves have it.
bool may_be_elastic(const ScheduleFlags& flags) {
  const StrategyEntry* entry = find_strategy(flags.sync ? "sync" : flags.strategy);
  return entry == nullptr || !entry->rounds || is_elastic(entry->update.kind);
}

bool is_elastic_by(const ScheduleFlags& flags) {
  const StrategyEntry* entry = find_strategy(flags.strategy);
  return flags.moving_rate || (entry != nullptr && is_elastic(entry->update.kind));
}

// A stage that chooses a schedule has all of it by its own flags.
void inherit_schedule(ScheduleFlags& stage, const ScheduleFlags& job) {
  const bool chooses = chooses_schedule(stage);
  if (!chooses) {
    stage.strategy = job.strategy;
    stage.sync = job.sync;
    stage.max_advance = job.max_advance;
    stage.staleness = job.staleness;
    stage.weedout = job.weedout;
    stage.groups = job.groups;
    stage.regroup_interval = job.regroup_interval;
    stage.origins = job.origins;
  }
  if (!stage.gradient_only && (!chooses || may_be_elastic(stage))) {
    take_over(stage.moving_rate, job.moving_rate);
  }
  if (is_elastic_by(stage)) take_over(stage.elastic_side, job.elastic_side);
}

// Of the flags that choose a schedule. A stage's are where its place says.
std::map<std::string, std::string> origins_elsewhere(const OptionValues& values) {
  std::map<std::string, std::string> origins;
  if (values.program() == Program::kStage) return origins;
  for (const char* name : {"strategy", "sync", "max-advance", "staleness", "weedout", "groups",
                           "regroup-interval"}) {
    if (auto origin = values.origin_elsewhere(name); !origin.empty()) origins[name] = origin;
  }
  return origins;
}

}  // namespace

ScheduleFlags schedule_flags(const OptionValues& values) {
  ScheduleFlags flags;
  values.get("strategy", flags.strategy);
  values.get("sync", flags.sync);
  values.get("max-advance", flags.max_advance);
  values.get("staleness", flags.staleness);
  values.get("weedout", flags.weedout);
  values.get("groups", flags.groups);
  values.get("regroup-interval", flags.regroup_interval);
  flags.origins = origins_elsewhere(values);
  values.get("gradient-only", flags.gradient_only);
  values.get("communication-period", flags.train);
  values.get("moving-rate", flags.moving_rate);
  values.get("elastic-side", flags.elastic_side);
  values.get("save-updater", flags.save_updater);
  values.get("codec", flags.codec);
  values.get("no-error-feedback", flags.no_error_feedback);
  values.get("replicated", flags.replicated);
  values.get("no-factors", flags.no_factors);
  values.get("factor", flags.factor);
  values.get("skip", flags.skip);
  values.get("staleness-weight", flags.staleness_weight);
  values.get("lr-scaling", flags.lr_scaling);
  values.get("lr-warmup", flags.lr_warmup);
  values.get("max-iter", flags.max_iter);
  values.get("test-interval", flags.test_interval);
  values.get("lr", flags.lr);
  values.get("momentum", flags.momentum);
  values.get("weight-decay", flags.weight_decay);
  return flags;
}

ScheduleFlags inherit(ScheduleFlags stage, const ScheduleFlags& job) {
  const bool own_rate = stage.moving_rate.has_value();
  inherit_schedule(stage, job);
  stage.gradient_only = stage.gradient_only || (job.gradient_only && !own_rate);
  stage.staleness_weight = stage.staleness_weight || job.staleness_weight;
  take_over(stage.train, job.train);
  take_over(stage.save_updater, job.save_updater);
  take_over(stage.codec, job.codec);
  stage.no_error_feedback = stage.no_error_feedback || job.no_error_feedback;
  if (stage.gradient_only) {
    stage.replicated = stage.replicated || job.replicated;
    stage.no_factors = stage.no_factors || (job.no_factors && stage.replicated);
  }
  take_over(stage.factor, job.factor);
  take_over(stage.skip, job.skip);
  take_over(stage.lr_scaling, job.lr_scaling);
  take_over(stage.lr_warmup, job.lr_warmup);
  return stage;
}

}  // namespace speedo
