#include <algorithm>
#include <set>

#include <speedo/train/schedule.hpp>

#include "sim/proof/proof_scenario.hpp"
#include "support/catch.hpp"

namespace speedo::sim {

TEST_CASE("the simulator knows every schedule of the registry, and mixtures") {
  const auto names = scenario_names();
  for (const StrategyEntry& entry : strategy_registry()) {
    CHECK(std::ranges::find(names, entry.name) != names.end());
  }
  CHECK(std::ranges::find(names, "hybrid") != names.end());
}

TEST_CASE("a seed draws a valid job, within the range of workers, and always the same") {
  std::set<std::uint64_t> workers;
  std::set<std::string> strategies;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Scenario scenario = draw_scenario(seed, scenario_names(), {3, 20});
    CHECK(scenario.workers >= 3);
    CHECK(scenario.workers <= 20);
    workers.insert(scenario.workers);
    strategies.insert(scenario.strategy);
    for (const Schedule& stage : scenario.config.stages) CHECK(check_schedule(stage));
    CHECK(scenario.config.workers_start <= scenario.workers);
    CHECK(scenario.config.workers_min <= scenario.config.workers_start);
    CHECK(std::ranges::is_sorted(scenario.faults, {}, &Fault::when));
    CHECK(to_string(scenario) == to_string(draw_scenario(seed, scenario_names(), {3, 20})));
  }
  CHECK(workers.size() == 18);
  CHECK(strategies.size() == scenario_names().size());
}

TEST_CASE("every kind of fault and of update is drawn by some seed") {
  std::set<FaultKind> faults;
  std::set<UpdateKind> kinds;
  std::set<UpdaterState> updaters;
  bool staleness = false, by_speed = false;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const Scenario scenario = draw_scenario(seed, scenario_names(), {2, 64});
    for (const Fault& fault : scenario.faults) faults.insert(fault.kind);
    for (const Schedule& stage : scenario.config.stages) {
      kinds.insert(stage.update.kind);
      updaters.insert(stage.update.updater);
      staleness |= stage.weight_by_staleness;
    }
    by_speed |= scenario.config.shard_by_speed;
  }
  CHECK(faults.size() == kFaultKinds);
  CHECK(kinds.size() == 4);
  CHECK(updaters.size() == 3);
  CHECK(staleness);
  CHECK(by_speed);
}

}  // namespace speedo::sim
