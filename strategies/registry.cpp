#include <speedo/train/strategy.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "async.hpp"
#include "grouping.hpp"
#include "partial_sync.hpp"
#include "ssp.hpp"
#include "sync.hpp"
#include "weedout.hpp"

namespace speedo {

namespace {

constexpr bool kRounds = true;
constexpr bool kNoRounds = false;
constexpr UpdateSpec kDelta{};
constexpr UpdateSpec kElasticDelta{.kind = UpdateKind::kElastic};
constexpr UpdateSpec kModels{.steps_per_run = 5, .updater = UpdaterState::kAverage};

// Short names and SpeeDO's.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kAliases = {{
    {"psc", "partial-sync"},
    {"drop", "weedout"},
}};

std::string known_names() {
  std::string names;
  for (const StrategyEntry& entry : strategy_registry()) {
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  return names;
}

}  // namespace

const std::vector<StrategyEntry>& strategy_registry() {
  static const std::vector<StrategyEntry> entries = {
      {"async", "merge whoever reports, start it again at once", make_async, kNoRounds, kDelta},
      {"sync", "wait for every live worker, merge the mean, start all", make_sync, kRounds, kDelta},
      {"partial-sync", "free until the fastest leads by --max-advance, then catch up",
       make_partial_sync, kNoRounds, kDelta, check_partial_sync},
      {"ssp", "stale synchronous parallel: at most --staleness runs ahead of the slowest", make_ssp,
       kNoRounds, kDelta},
      {"weedout", "drop what reports too late (--weedout)", make_weedout, kNoRounds, kDelta,
       check_weedout},
      {"grouping", "sync inside a group of equal speed, async between groups", make_grouping,
       kNoRounds, kDelta, check_grouping},
      {"easgd", "elastic averaging around a centre (--moving-rate)", make_async, kNoRounds,
       kElasticDelta},
      {"eamsgd", "elastic averaging of workers with Nesterov momentum", make_async, kNoRounds,
       kElasticDelta},
      {"sync-easgd", "elastic averaging in rounds", make_sync, kRounds, kElasticDelta},
      {"averaging", "average whole models, updaters too, every few iterations", make_sync, kRounds,
       kModels},
  };
  return entries;
}

const StrategyEntry* find_strategy(std::string_view name) {
  for (const auto& [alias, meant] : kAliases) {
    if (name == alias) name = meant;
  }
  const auto& entries = strategy_registry();
  const auto entry = std::ranges::find_if(
      entries, [&](const StrategyEntry& each) { return name == each.name; });
  return entry == entries.end() ? nullptr : &*entry;
}

Result<std::unique_ptr<Strategy>> make_strategy(const StrategyOptions& options) {
  const StrategyEntry* entry = find_strategy(options.name);
  if (entry == nullptr && options.name == "hybrid") {
    return Error{ErrorCode::kUsage,
                 "'hybrid' is not one strategy but several in turn: list them with --hybrid"};
  }
  if (entry == nullptr) {
    return Error{ErrorCode::kUsage, "unknown strategy '" + options.name +
                                        "'; known are: " + known_names()};
  }
  if (entry->check != nullptr) SPEEDO_TRY(entry->check(options));
  return entry->make(options);
}

}  // namespace speedo
