#include "sim/proof/proof_schedule.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace speedo::sim {
namespace {

StrategyOptions draw_options(Random& random, const std::string& name, std::uint64_t workers) {
  StrategyOptions options;
  options.name = name;
  if (name == "partial-sync") options.max_advance = 1 + random.below(5);
  if (name == "ssp") options.staleness = random.below(5);
  if (name == "weedout") options.window = 1 + random.below(2 * workers);
  if (name == "grouping") {
    if (random.below(2) == 0) {
      const std::uint64_t groups = 1 + random.below(3);
      options.groups.resize(groups);
      for (std::uint64_t i = 0; i < workers; ++i) {
        options.groups[random.below(groups)].push_back("host" + std::to_string(i));
      }
      std::erase_if(options.groups, [](const auto& group) { return group.empty(); });
    } else {
      options.group_count = random.below(4);
      options.regroup_interval = random.below(2) * (10 + random.below(100));
    }
  }
  return options;
}

UpdateSpec draw_update(Random& random, const StrategyOptions& options, std::uint64_t workers) {
  UpdateSpec update = default_update(options, workers);
  if (is_elastic(update.kind)) {
    if (random.below(3) == 0) update.kind = UpdateKind::kElasticMaster;
    if (random.below(3) == 0) {
      update.moving_rate = random.uniform() * 0.9F / static_cast<float>(workers);
    }
    update.steps_per_run = 1 + static_cast<std::uint32_t>(random.below(10));
    return update;
  }
  switch (random.below(5)) {
    case 0: update.kind = UpdateKind::kGradientOnly; break;
    case 1: update.steps_per_run = 1 + static_cast<std::uint32_t>(random.below(5)); break;
    case 2: update.updater = static_cast<UpdaterState>(random.below(3)); break;
    case 3:
      update.kind = UpdateKind::kElastic;
      update.moving_rate = 0.9F / static_cast<float>(workers);
      break;
    default: break;
  }
  if (random.below(6) == 0) update.factor = 2.0F;
  if (random.below(8) == 0) update.skip = 1e-6F;
  return update;
}

Schedule draw_schedule(Random& random, const std::string& name, std::uint64_t workers) {
  constexpr int kAttempts = 30;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Schedule schedule;
    schedule.strategy = draw_options(random, name, workers);
    schedule.update = draw_update(random, schedule.strategy, workers);
    schedule.weight_by_staleness = random.below(4) == 0;
    if (random.below(4) == 0) {
      schedule.lr_scaling = static_cast<LrScaling>(random.below(3));
      schedule.lr_warmup = random.below(30);
    }
    // What means nothing in combination is refused, so draw again.
    if (check_schedule(schedule)) return schedule;
  }
  Schedule plain;
  plain.strategy = draw_options(random, name, workers);
  plain.update = default_update(plain.strategy, workers);
  return plain;
}

}  // namespace

std::vector<Schedule> draw_stages(Random& random, const std::string& name, std::uint64_t workers) {
  if (name != kHybridName) return {draw_schedule(random, name, workers)};
  const auto& registry = strategy_registry();
  std::vector<Schedule> stages;
  for (std::uint64_t i = 0, n = 2 + random.below(3); i < n; ++i) {
    stages.push_back(draw_schedule(random, registry[random.below(registry.size())].name, workers));
  }
  return stages;
}

bool shards_by_speed(const std::vector<Schedule>& stages) {
  return std::ranges::all_of(stages, [](const Schedule& stage) {
    return find_strategy(stage.strategy.name)->rounds;
  });
}

std::string describe(const Schedule& schedule) {
  constexpr const char* kKinds[] = {"delta", "gradient", "elastic", "elastic on the master"};
  constexpr const char* kUpdaters[] = {"kept", "averaged", "reset"};
  const StrategyOptions& strategy = schedule.strategy;
  const UpdateSpec& update = schedule.update;
  std::string text = strategy.name;
  if (strategy.max_advance != 0) text += fmt::format(" s={}", strategy.max_advance);
  if (strategy.name == "ssp") text += fmt::format(" s={}", strategy.staleness);
  if (strategy.window != 0) text += fmt::format(" n={}", strategy.window);
  if (!strategy.groups.empty()) text += fmt::format(" {} named groups", strategy.groups.size());
  text += fmt::format(" {} x{}", kKinds[static_cast<int>(update.kind)], update.steps_per_run);
  if (is_elastic(update.kind)) text += fmt::format(" a={:.3g}", update.moving_rate);
  if (update.updater != UpdaterState::kKeep) {
    text += fmt::format(" updaters {}", kUpdaters[static_cast<int>(update.updater)]);
  }
  if (update.factor != 1.0F) text += fmt::format(" /{}", update.factor);
  if (update.codec.kind != CodecKind::kNone) text += ' ' + to_string(update.codec);
  if (update.replicated) text += " replicated";
  if (update.skip != 0.0F) text += fmt::format(" skip {}", update.skip);
  if (schedule.weight_by_staleness) text += " 1/Y";
  if (schedule.lr_scaling != LrScaling::kNone) text += " lr by workers";
  if (schedule.iterations != 0) text += fmt::format(" for {}", schedule.iterations);
  return text;
}

}  // namespace speedo::sim
