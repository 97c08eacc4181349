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

TEST_CASE("some jobs are merged in parts, each of which has chunks") {
  int in_parts = 0, without_copies = 0, without_shard = 0;
  std::set<std::size_t> servers;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const Scenario scenario = draw_scenario(seed, scenario_names(), {2, 64});
    const bool has_shard_fault = std::ranges::any_of(
        scenario.faults, [](const Fault& fault) { return fault.kind >= kFirstShardFault; });
    if (scenario.has_shard.empty()) {
      CHECK(scenario.servers == 1);
      CHECK_FALSE(has_shard_fault);
      continue;
    }
    in_parts += 1;
    without_copies += scenario.shard_copies ? 0 : 1;
    without_shard += std::ranges::count(scenario.has_shard, false) > 0 ? 1 : 0;
    servers.insert(scenario.servers);
    const ShortChunks chunks(scenario.chunk_elements);
    CHECK(chunk_count(scenario.elements) >= scenario.servers);
    CHECK(scenario.has_shard.size() == scenario.servers);
    CHECK(scenario.shares_memory.empty());
    CHECK(has_shard_fault == !scenario.faults.empty());
  }
  CHECK(in_parts > 60);
  CHECK(without_copies > 0);
  CHECK(without_shard > 0);
  CHECK(servers == std::set<std::size_t>{2, 3, 4});
}

}  // namespace speedo::sim
