#include "cli/stages.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/log.hpp"
#include "cli/hybrid.hpp"
#include "cli/make_schedule.hpp"
#include "train/session/stage_switch.hpp"

namespace speedo {

namespace {

// Where one stage of the job was written, for messages; empty for the flags of a command line.
std::string at(const std::string& place) { return place.empty() ? "" : place + ": "; }

Result<std::vector<HybridStage>> hybrid_stages(const ClusterFlags& flags) {
  if (!flags.hybrid.empty() && !flags.hybrid_file.empty()) {
    return usage_error("--hybrid and --hybrid-file both give the stages: give one of them");
  }
  return flags.hybrid.empty() ? read_hybrid_file(flags.hybrid_file) : parse_hybrid(flags.hybrid);
}

// `keeps_states`: what workers have alone is in checkpoints, too.
Result<void> check_deterministic(const Schedule& schedule, const std::string& place,
                                 bool keeps_states) {
  const std::string why = at(place) + "--deterministic: ";
  if (!in_rounds(schedule)) {
    return usage_error(why + "what " + schedule.strategy.name +
                       " merges depends on who reports first: use --sync or --strategy averaging");
  }
  if (keeps_states) return {};
  const UpdateSpec& update = schedule.update;
  if (is_elastic(update.kind)) {
    return usage_error(why +
                       "elastic workers keep weights of their own, which no checkpoint holds: add "
                       "--snapshot-workers, or use --gradient-only or --strategy averaging");
  }
  if (update.kind == UpdateKind::kFullDelta && update.updater == UpdaterState::kKeep) {
    return usage_error(why +
                       "with full updates each worker keeps a momentum of its own, which no "
                       "checkpoint holds: add --snapshot-workers, --gradient-only, or "
                       "--save-updater average or reset");
  }
  if (carries_residual(update)) {
    return usage_error(why + "what --codec " + to_string(update.codec) +
                       " leaves out each worker keeps, and no checkpoint holds it: add "
                       "--snapshot-workers, or leave the codec out");
  }
  return {};
}

Result<void> check_stage(const ClusterFlags& flags, const Schedule& schedule,
                         const std::string& place) {
  if (!flags.deterministic) return {};
  return check_deterministic(schedule, place, flags.snapshot_workers);
}

Result<Schedule> make_stage(const ClusterFlags& flags, const HybridStage& stage,
                            std::uint64_t workers) {
  auto made = make_schedule(inherit(stage.flags, flags.schedule), workers, FlagScope::kStage);
  if (!made) return Error{made.error().code, at(stage.place) + made.error().message};
  SPEEDO_TRY(check_stage(flags, *made, stage.place));
  return made;
}

Result<std::vector<Schedule>> make_written(const ClusterFlags& flags,
                                           const std::vector<HybridStage>& written,
                                           std::uint64_t workers) {
  std::vector<Schedule> stages;
  for (const HybridStage& stage : written) {
    SPEEDO_ASSIGN(Schedule schedule, make_stage(flags, stage, workers));
    if (schedule.iterations == 0 && stages.size() + 1 < written.size()) {
      return usage_error(at(stage.place) +
                         "needs maxIter, the merges it lasts: the next stage would never begin");
    }
    stages.push_back(std::move(schedule));
  }
  return stages;
}

Result<std::vector<Schedule>> make_hybrid(const ClusterFlags& flags, std::uint64_t workers) {
  SPEEDO_ASSIGN(const std::vector<HybridStage> written, hybrid_stages(flags));
  auto stages = make_written(flags, written, workers);
  // What is wrong with a stage of a file is wrong with the file, not with the command line.
  if (!stages && !flags.hybrid_file.empty() && stages.error().code == ErrorCode::kUsage) {
    return Error{ErrorCode::kConfig, stages.error().message};
  }
  return stages;
}

}  // namespace

bool in_rounds(const Schedule& schedule) {
  const StrategyEntry* entry = find_strategy(schedule.strategy.name);
  return entry != nullptr && entry->rounds;
}

Result<std::vector<Schedule>> make_stages(const ClusterFlags& flags) {
  SPEEDO_ASSIGN(const WorkerRange range, parse_workers(flags.workers));
  std::vector<Schedule> stages;
  if (!flags.hybrid.empty() || !flags.hybrid_file.empty()) {
    SPEEDO_ASSIGN(stages, make_hybrid(flags, range.expected()));
  } else {
    SPEEDO_ASSIGN(Schedule schedule,
                  make_schedule(flags.schedule, range.expected(), FlagScope::kJob));
    SPEEDO_TRY(check_stage(flags, schedule, ""));
    stages.push_back(std::move(schedule));
  }
  if (flags.shard_by != "equal" && std::none_of(stages.begin(), stages.end(), in_rounds)) {
    return usage_error(
        "--shard-by " + flags.shard_by + " gives some workers more of a round, but " +
        stages.front().strategy.name +
        " has no rounds (faster workers train more anyway): use --sync, or leave it out");
  }
  // All stages have rounds, see check_stage().
  for (Schedule& stage : stages) {
    stage.strategy.exact_workers = flags.deterministic ? range.start : 0;
  }
  return stages;
}

std::uint64_t steps_used(const std::vector<Schedule>& stages, std::uint64_t iterations,
                         std::uint64_t workers) {
  // Of the first so many iterations of one pass over the stages.
  const auto use = [&](std::uint64_t left) {
    std::uint64_t steps = 0;
    for (const Schedule& stage : stages) {
      const std::uint64_t done = stage.iterations == 0 ? left : std::min(left, stage.iterations);
      steps += done * (in_rounds(stage) ? workers : 1) * stage.update.steps_per_run;
      left -= done;
    }
    return steps;
  };
  const std::uint64_t cycle = StageSwitch::cycle_of(stages);
  if (cycle == 0) return use(iterations);
  return iterations / cycle * use(cycle) + use(iterations % cycle);
}

}  // namespace speedo
