// No schedule ever stalls for good: whatever has happened, as long as those who run report, all
// live workers get to train again. That somebody runs while anybody lives, World demands at every
// step.

#include "support/catch.hpp"

#include "random_events.hpp"
#include "trace.hpp"

namespace speedo {

namespace {

// Everybody who runs reports, in rounds, until each live worker has been started again.
std::string drain(Strategy& strategy, World& world, bool fail) {
  Ids waiting = world.alive;
  for (int round = 0; round < 20 && !waiting.empty(); ++round) {
    for (const std::uint64_t worker : Ids(world.running)) {
      world.running.erase(worker);
      if (!fail) world.pending.insert(worker);
      const Commands commands = strategy.on(fail ? failed(worker) : trained(worker, 100));
      if (const std::string wrong = world.apply(commands); !wrong.empty()) return wrong;
      for (const Command& command : commands) {
        if (const auto* train = std::get_if<Train>(&command)) waiting.erase(train->worker.value);
      }
    }
  }
  return waiting.empty() ? "" : "a live worker waits for ever";
}

}  // namespace

TEST_CASE("every schedule: from any state, if those who run report, everybody trains again") {
  for (const StrategyEntry& entry : strategy_registry()) {
    INFO(entry.name);
    CHECK(holds([&](const Randoms& randoms, std::uint32_t random) -> std::string {
      StrategyOptions options = usual_options(entry.name);
      if (options.max_advance > 0) options.max_advance = 1 + random % 4;
      if (options.staleness > 0) options.staleness = random % 4;
      if (options.window > 0) options.window = 1 + random % 10;
      const auto strategy = strategy_of(options);
      World world;
      for (const std::uint32_t each : randoms) {
        const Event event = next_event(world, each);
        if (const auto wrong = world.apply(strategy->on(event)); !wrong.empty()) return wrong;
      }
      return drain(*strategy, world, random % 3 == 0);
    }));
  }
}

TEST_CASE("every schedule: what it saves a new one restores") {
  for (const StrategyEntry& entry : strategy_registry()) {
    INFO(entry.name);
    const StrategyOptions options = usual_options(entry.name);
    const auto strategy = strategy_of(options);
    strategy->on(joined({0}, {"a/1/0"}));
    for (int i = 0; i < 5; ++i) strategy->on(trained(0, 100));
    const auto next = strategy_of(options);
    REQUIRE(next->restore(strategy->save()));
    CHECK(next->save() == strategy->save());
    const auto refused = strategy_of(options)->restore("nonsense");
    REQUIRE(!refused);
    CHECK(refused.error().code == ErrorCode::kCorrupt);
  }
}

}  // namespace speedo
