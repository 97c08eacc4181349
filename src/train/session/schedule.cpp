#include <speedo/train/schedule.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include <speedo/base/assert.hpp>

namespace speedo {

namespace {

// Of easgd: the paper keeps the product of moving rate and workers at 0.9.
constexpr float kElasticStrength = 0.9F;

// NaN is in no range.
bool within(float value, float low, float high) { return value >= low && value <= high; }

bool finite_from(float value, float low) { return std::isfinite(value) && value >= low; }

std::string text(float value) {
  std::string digits = std::to_string(value);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.ends_with('.')) digits.pop_back();
  return digits;
}

// Parameters that the chosen strategy would not read.
Result<void> check_foreign_parameters(const StrategyOptions& options, std::string_view name) {
  const auto refuse = [&](const char* flag, const char* owner) {
    return usage_error(std::string(flag) + " belongs to strategy '" + owner + "', not to '" +
                       std::string(name) + "': leave it out");
  };
  if (options.max_advance != 0 && name != "partial-sync") {
    return refuse("--max-advance", "partial-sync");
  }
  if (options.staleness != 0 && name != "ssp") return refuse("--staleness", "ssp");
  if (options.window != 0 && name != "weedout") return refuse("--weedout", "weedout");
  if (name == "grouping") return {};
  if (!options.groups.empty()) return refuse("--groups", "grouping");
  if (options.group_count != 0) return refuse("--groups N", "grouping");
  if (options.regroup_interval != 0) return refuse("--regroup-interval", "grouping");
  return {};
}

Result<void> check_numbers(const UpdateSpec& update) {
  if (update.steps_per_run == 0)
    return usage_error("--train 0: a run trains at least one mini-batch");
  if (!std::isfinite(update.factor) || update.factor <= 0.0F) {
    return usage_error("--factor divides what workers send, so it must be above 0");
  }
  if (!finite_from(update.skip, 0.0F)) return usage_error("--skip must be 0 or a positive number");
  if (update.base_lr && !finite_from(*update.base_lr, 0.0F)) {
    return usage_error("--lr must be 0 or a positive number");
  }
  if (update.momentum && !(within(*update.momentum, 0.0F, 1.0F) && *update.momentum < 1.0F)) {
    return usage_error("--momentum must be at least 0 and below 1");
  }
  if (update.weight_decay && !finite_from(*update.weight_decay, 0.0F)) {
    return usage_error("--weight-decay must be 0 or a positive number");
  }
  return {};
}

Result<void> check_elastic(const UpdateSpec& update, const StrategyEntry& entry) {
  const bool moves = update.moving_rate > 0.0F || !is_elastic(update.kind);
  if (!within(update.moving_rate, 0.0F, 1.0F) || !moves) {
    return usage_error(
        "--moving-rate " + text(update.moving_rate) +
        " is not above 0 and at most 1: it is the part of its distance that a worker and the "
        "centre move towards each other");
  }
  if (is_elastic(entry.update.kind) && !is_elastic(update.kind)) {
    return usage_error("strategy '" + std::string(entry.name) +
                       "' is elastic averaging, which sends neither deltas nor gradients: use '" +
                       (entry.rounds ? "sync" : "async") + "' for those");
  }
  if (!is_elastic(update.kind)) {
    if (update.moving_rate == 0.0F) return {};
    return usage_error(
        "--moving-rate is of elastic averaging, which --gradient-only and averaged deltas "
        "exclude: leave one of them out");
  }
  if (update.factor != 1.0F || update.skip != 0.0F) {
    return usage_error(
        "--factor and --skip change deltas, and elastic averaging sends none: leave them "
        "out, or choose another --moving-rate");
  }
  if (update.updater != UpdaterState::kKeep) {
    return usage_error(
        "elastic workers keep weights and momentum of their own, so averaging or "
        "resetting the updaters contradicts --moving-rate");
  }
  return {};
}

Result<void> check_gradients(const UpdateSpec& update, const StrategyEntry& entry) {
  if (update.kind != UpdateKind::kGradientOnly) return {};
  if (update.updater != UpdaterState::kKeep || entry.update.updater == UpdaterState::kAverage) {
    return usage_error(
        "--gradient-only leaves the updater with the master, so workers have none to "
        "average or to reset: use strategy sync, without --save-updater");
  }
  if (update.steps_per_run > 1) {
    return usage_error("--gradient-only sends the gradient of one iteration, so --train " +
                       std::to_string(update.steps_per_run) +
                       " contradicts it (use --batch for larger batches)");
  }
  if (update.factor != 1.0F || update.skip != 0.0F) {
    return usage_error(
        "--factor and --skip change deltas, and --gradient-only sends none: leave them "
        "out");
  }
  return {};
}

// Something that a worker could send later.
bool leaves_out(const UpdateSpec& update) {
  return update.codec.kind != CodecKind::kNone && !is_elastic(update.kind);
}

Result<void> check_codec(const UpdateSpec& update) {
  if (!update.error_feedback && !leaves_out(update)) {
    return usage_error(
        "--no-error-feedback is of a --codec whose residual workers keep: leave it out without "
        "one, and with elastic averaging, where nothing is left out");
  }
  if (update.codec.kind == CodecKind::kNone) return {};
  const std::string name = "--codec " + to_string(update.codec);
  if (update.kind == UpdateKind::kElasticMaster) {
    return usage_error(name +
                       " leaves out what the next contribution makes up for, and with "
                       "--elastic-side master workers send their whole weights, which nothing "
                       "makes up for: use --elastic-side worker, or leave the codec out");
  }
  if (averages_histories(update)) {
    return usage_error(name +
                       " is for changes of weights, and averaged updaters are sent whole beside "
                       "them: leave it out, or give --save-updater keep");
  }
  return {};
}

Result<void> check_replicated(const Schedule& schedule) {
  const UpdateSpec& update = schedule.update;
  if (!update.replicated) {
    if (update.factors) return {};
    return usage_error("--no-factors is of --replicated, where inner products may travel as "
                       "factors: leave it out, or add --replicated");
  }
  if (schedule.strategy.name != "sync" || update.kind != UpdateKind::kGradientOnly) {
    return usage_error("--replicated lets every worker apply the same mean gradient to its own "
                       "weights, so all have to meet in rounds and send gradients: add --sync "
                       "--gradient-only");
  }
  if (update.codec.kind != CodecKind::kNone) {
    return usage_error("--codec " + to_string(update.codec) +
                       " is of what a worker sends alone, and with --replicated what travels is "
                       "also what all others apply: leave one of them out");
  }
  return {};
}

Result<void> check_updaters(const UpdateSpec& update, const StrategyEntry& entry) {
  if (update.updater == UpdaterState::kKeep) return {};
  if (!entry.rounds) {
    return usage_error(
        "updaters are averaged or reset where all workers meet in rounds, and strategy '" +
        std::string(entry.name) + "' has none: use averaging or sync");
  }
  if (update.updater == UpdaterState::kAverage && (update.factor != 1.0F || update.skip != 0.0F)) {
    return usage_error(
        "--factor and --skip would change the averaged updaters like weights: leave them "
        "out, or do not average the updaters");
  }
  return {};
}

Result<void> check_weights(const Schedule& schedule, const StrategyEntry& entry) {
  if (schedule.weight_by_staleness && entry.rounds) {
    return usage_error("--staleness-weight means nothing with strategy '" +
                       std::string(entry.name) +
                       "': in rounds nothing is stale, every weight is 1");
  }
  if (schedule.lr_scaling == LrScaling::kNone) {
    if (schedule.lr_warmup == 0) return {};
    return usage_error(
        "--lr-warmup leads to the scale of --lr-scaling, and none is given: leave it out, "
        "or give --lr-scaling linear or sqrt");
  }
  if (!entry.rounds) {
    return usage_error(
        "--lr-scaling follows the number of workers whose work makes one iteration, and "
        "with strategy '" +
        std::string(entry.name) + "' that is not all: use sync or averaging");
  }
  if (is_elastic(schedule.update.kind)) {
    return usage_error(
        "--lr-scaling makes up for a mean over workers, and elastic averaging takes none: "
        "leave it out");
  }
  return {};
}

}  // namespace

bool any_replicated(const std::vector<Schedule>& stages) {
  return std::ranges::any_of(stages, [](const Schedule& stage) { return stage.update.replicated; });
}

bool any_replicated(const std::vector<UpdateSpec>& stages) {
  return std::ranges::any_of(stages, &UpdateSpec::replicated);
}

std::vector<UpdateSpec> updates_of(const std::vector<Schedule>& stages) {
  std::vector<UpdateSpec> updates;
  for (const Schedule& stage : stages) {
    const StrategyEntry* const entry = find_strategy(stage.strategy.name);
    updates.push_back(stage.update);
    updates.back().in_rounds = entry != nullptr && entry->rounds;
  }
  return updates;
}

UpdateSpec default_update(const StrategyOptions& strategy, std::uint64_t workers) {
  const StrategyEntry* entry = find_strategy(strategy.name);
  if (entry == nullptr) return {};
  UpdateSpec update = entry->update;
  if (is_elastic(update.kind)) {
    update.moving_rate = kElasticStrength / static_cast<float>(std::max<std::uint64_t>(workers, 1));
  }
  return update;
}

Result<void> check_schedule(const Schedule& schedule) {
  SPEEDO_TRY(make_strategy(schedule.strategy));
  const StrategyEntry& entry = *find_strategy(schedule.strategy.name);
  SPEEDO_TRY(check_foreign_parameters(schedule.strategy, entry.name));
  SPEEDO_TRY(check_numbers(schedule.update));
  SPEEDO_TRY(check_elastic(schedule.update, entry));
  SPEEDO_TRY(check_gradients(schedule.update, entry));
  SPEEDO_TRY(check_updaters(schedule.update, entry));
  SPEEDO_TRY(check_codec(schedule.update));
  SPEEDO_TRY(check_replicated(schedule));
  return check_weights(schedule, entry);
}

float lr_scale(const Schedule& schedule, std::uint64_t done, std::uint64_t workers) {
  const auto count = static_cast<float>(std::max<std::uint64_t>(workers, 1));
  float scale = 1.0F;
  if (schedule.lr_scaling == LrScaling::kLinear) scale = count;
  if (schedule.lr_scaling == LrScaling::kSqrt) scale = std::sqrt(count);
  if (done >= schedule.lr_warmup) return scale;
  const double part = static_cast<double>(done) / static_cast<double>(schedule.lr_warmup);
  return static_cast<float>(1.0 + (scale - 1.0) * part);
}

}  // namespace speedo
