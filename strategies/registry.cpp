#include <speedo/train/strategy.hpp>

#include "async.hpp"
#include "sync.hpp"

namespace speedo {

const std::vector<StrategyEntry>& strategy_registry() {
  static const std::vector<StrategyEntry> entries = {
      {"async", "merge whoever reports, start it again at once", make_async},
      {"sync", "wait for every live worker, merge the mean, start all", make_sync},
      {"partial-sync", "free until the fastest leads by --maxAdvance, then catch up", nullptr},
      {"psc", "partial-sync under its short name", nullptr},
      {"ssp", "stale synchronous parallel: a bounded lead over the slowest", nullptr},
      {"weedout", "drop what reports too late (--weedout)", nullptr},
      {"easgd", "elastic averaging around a centre (--movingRate)", nullptr},
      {"averaging", "average whole models every few iterations", nullptr},
      {"grouping", "sync inside a group of equal speed, async between groups", nullptr},
      {"hybrid", "a list of schedules, one after another (--hybrid)", nullptr},
  };
  return entries;
}

Result<std::unique_ptr<Strategy>> make_strategy(const StrategyOptions& options) {
  std::string known;
  for (const StrategyEntry& entry : strategy_registry()) {
    if (options.name != entry.name) {
      known += known.empty() ? "" : ", ";
      known += entry.name;
      continue;
    }
    if (entry.make != nullptr) return entry.make(options);
    return Error{ErrorCode::kUnsupported,
                 "strategy '" + options.name + "' is not built yet; use async or sync"};
  }
  return Error{ErrorCode::kUsage,
               "unknown strategy '" + options.name + "'; known are: " + known};
}

}  // namespace speedo
