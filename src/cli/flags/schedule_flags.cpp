#include "cli/flags/schedule_flags.hpp"

#include <CLI/CLI.hpp>

#include <speedo/train/strategy.hpp>

#include "cli/flags/flag_values.hpp"

namespace speedo {

namespace {

std::string strategy_help() {
  std::string help = "When results are merged:";
  const char* separator = " ";
  for (const StrategyEntry& entry : strategy_registry()) {
    help += separator;
    help += entry.name;
    separator = ", ";
  }
  return help + " (default async)";
}

void add_when_flags(CLI::App& app, ScheduleFlags& flags) {
  const char* group = "Schedule: when results are merged";
  takes(app.add_option("--strategy", flags.strategy, strategy_help()), "WORD")->group(group);
  app.add_flag("--sync", flags.sync, "The same as --strategy sync")->group(group);
  takes_count(app.add_option("--max-advance", flags.max_advance,
                             "partial-sync: catch up when the fastest worker leads by so many runs "
                             "(default 2)"),
              1)
      ->group(group);
  takes_count(app.add_option("--staleness", flags.staleness,
                             "ssp: runs that a worker may lead the slowest by (default 2)"),
              0)
      ->group(group);
  takes_count(app.add_option("--weedout,--drop", flags.weedout,
                             "weedout: drop what is not of the last N reporters, or of as many as "
                             "there are workers (default 1)"),
              1)
      ->group(group);
  takes(app.add_option("--groups", flags.groups,
                       "grouping: a file (one group a line, names of workers or hosts), a number "
                       "of groups to measure, or auto (default)"),
        "FILE|N|auto")
      ->group(group);
  takes_count(app.add_option("--regroup-interval", flags.regroup_interval,
                             "grouping: reports between measurements; 0: measure once (default)"),
              0)
      ->group(group);
}

void add_what_flags(CLI::App& app, ScheduleFlags& flags) {
  const char* group = "Update rule: what is merged";
  app.add_flag("--gradient-only", flags.gradient_only,
               "Workers send gradients; the master applies momentum, decay and learning rate")
      ->group(group);
  takes_count(app.add_option("--train,--communication-period,--average-every", flags.train,
                             "Mini-batches a worker trains per exchange (default 1; averaging 5)"),
              1)
      ->group(group);
  takes_number(app.add_option("--moving-rate", flags.moving_rate,
                              "Elastic averaging: workers keep weights of their own, drawn to the "
                              "master's by this, 0 to 1 (default with easgd: 0.9 / workers)"))
      ->group(group);
  takes_one_of(app.add_option("--elastic-side", flags.elastic_side,
                              "Who computes the elastic step: worker (default), or master as in "
                              "SpeeDO, with twice the bytes"),
               {"worker", "master"})
      ->group(group);
  takes_one_of(app.add_option("--save-updater", flags.save_updater,
                              "Solver history (momentum) of full updates: each worker may keep its "
                              "own (keep, the default), average it with the weights (average, "
                              "the default with averaging), or reset it before each run"),
               {"keep", "average", "reset"})
      ->group(group);
  takes_number(
      app.add_option("--factor", flags.factor, "Divide each worker's update by this (default 1)"))
      ->group(group);
  takes_amount(app.add_option("--skip", flags.skip,
                              "Leave out update elements smaller than this (default 0)"))
      ->group(group);
}

void add_weight_flags(CLI::App& app, ScheduleFlags& flags) {
  const char* group = "Weights: how much of it";
  app.add_flag("--staleness-weight", flags.staleness_weight,
               "Multiply a contribution by 1/(1 + merges since its weights were read)")
      ->group(group);
  takes_one_of(app.add_option("--lr-scaling", flags.lr_scaling,
                              "With sync and averaging: multiply the learning rate by 1 (none, the "
                              "default), the number of workers (linear) or its root (sqrt)"),
               {"none", "linear", "sqrt"})
      ->group(group);
  takes_count(app.add_option("--lr-warmup", flags.lr_warmup,
                             "Iterations over which the scaled learning rate is reached (default "
                             "0)"),
              0)
      ->group(group);
}

void add_solver_flags(CLI::App& app, ScheduleFlags& flags, FlagScope scope) {
  const bool of_stage = scope == FlagScope::kStage;
  const char* group = kSolverFlagGroup;
  takes_count(app.add_option("--max-iter", flags.max_iter,
                             of_stage ? "Merges of this stage"
                                      : "Merges to train (default: the solver's max_iter)"),
              of_stage ? 1 : 0)
      ->group(group);
  takes_count(app.add_option("--test-interval,--test", flags.test_interval,
                             "Merges between tests; 0: never (default: the solver's, else one test "
                             "at the end)"),
              0)
      ->group(group);
  add_rate_flags(app, flags.lr, flags.momentum, flags.weight_decay);
}

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
  }
  if (!stage.gradient_only && (!chooses || may_be_elastic(stage))) {
    take_over(stage.moving_rate, job.moving_rate);
  }
  if (is_elastic_by(stage)) take_over(stage.elastic_side, job.elastic_side);
}

}  // namespace

void add_rate_flags(CLI::App& app, std::optional<double>& lr, std::optional<double>& momentum,
                    std::optional<double>& weight_decay) {
  const char* group = kSolverFlagGroup;
  takes_amount(app.add_option("--lr", lr, "base_lr (default: the solver's)"))->group(group);
  takes_amount(app.add_option("--momentum", momentum, "momentum (default: the solver's)"))
      ->group(group);
  takes_amount(
      app.add_option("--weight-decay", weight_decay, "weight_decay (default: the solver's)"))
      ->group(group);
}

void add_schedule_flags(CLI::App& app, ScheduleFlags& flags, FlagScope scope) {
  add_when_flags(app, flags);
  add_what_flags(app, flags);
  add_weight_flags(app, flags);
  add_solver_flags(app, flags, scope);
}

ScheduleFlags inherit(ScheduleFlags stage, const ScheduleFlags& job) {
  const bool own_rate = stage.moving_rate.has_value();
  inherit_schedule(stage, job);
  stage.gradient_only = stage.gradient_only || (job.gradient_only && !own_rate);
  stage.staleness_weight = stage.staleness_weight || job.staleness_weight;
  take_over(stage.train, job.train);
  take_over(stage.save_updater, job.save_updater);
  take_over(stage.factor, job.factor);
  take_over(stage.skip, job.skip);
  take_over(stage.lr_scaling, job.lr_scaling);
  take_over(stage.lr_warmup, job.lr_warmup);
  return stage;
}

}  // namespace speedo
