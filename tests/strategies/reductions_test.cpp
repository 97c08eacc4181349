// Where theory says that two schedules are the same, their commands are.

#include <algorithm>

#include "support/catch.hpp"

#include "random_events.hpp"
#include "trace.hpp"

namespace speedo {

namespace {

enum class Compared {
  kCommands,  // all, in order
  kTrains,    // who starts at which event; and what both have merged when a round is over
};

// A mean of one contribution is that contribution.
Command plain(Command command) {
  const auto* average = std::get_if<Average>(&command);
  if (average == nullptr || average->workers.size() > 1) return command;
  return Merge{average->workers.front()};
}

std::string trains_of(const Commands& commands) {
  Commands trains;
  std::ranges::copy_if(commands, std::back_inserter(trains), [](const Command& command) {
    return std::holds_alternative<Train>(command);
  });
  return to_text(trains);
}

std::string differ(const StrategyOptions& one, const StrategyOptions& other,
                   const Randoms& randoms, Compared what, bool joins = true) {
  const auto first = strategy_of(one);
  const auto second = strategy_of(other);
  World world, shadow;
  for (const std::uint32_t random : randoms) {
    if (!joins && world.alive.empty() && world.next > 0) return {};
    const Event event = next_event(world, random, joins);
    shadow.alive = world.alive;
    Commands left_side = first->on(event);
    Commands right_side = second->on(event);
    std::ranges::transform(left_side, left_side.begin(), plain);
    std::ranges::transform(right_side, right_side.begin(), plain);
    const bool same = what == Compared::kCommands ? to_text(left_side) == to_text(right_side)
                                                  : trains_of(left_side) == trains_of(right_side);
    if (!same) return to_text(left_side) + " against " + to_text(right_side);
    // Both sides decide on the same contributions between two starts.
    if (const auto* e = std::get_if<Trained>(&event)) shadow.pending.insert(e->worker.value);
    shadow.running = world.running;
    if (const auto wrong = shadow.apply(right_side); !wrong.empty()) return wrong;
    if (const auto wrong = world.apply(left_side); !wrong.empty()) return wrong;
    if (!trains_of(left_side).empty() && world.pending != shadow.pending) return "merges differ";
  }
  return {};
}

bool same(const StrategyOptions& one, const StrategyOptions& other,
          Compared what = Compared::kCommands, bool joins = true) {
  return holds([&](const Randoms& randoms, std::uint32_t) {
    return differ(one, other, randoms, what, joins);
  });
}

constexpr std::uint64_t kUnbounded = std::uint64_t{1} << 40U;
const StrategyOptions kAsync{.name = "async"};
const StrategyOptions kSync{.name = "sync"};

}  // namespace

TEST_CASE("an unbounded partial-sync, ssp or weedout is async") {
  CHECK(same({.name = "partial-sync", .max_advance = kUnbounded}, kAsync));
  CHECK(same({.name = "ssp", .staleness = kUnbounded}, kAsync));
  CHECK(same({.name = "weedout", .window = kUnbounded}, kAsync));
}

TEST_CASE("the largest parameters there are do not overflow") {
  CHECK(same({.name = "partial-sync", .max_advance = UINT64_MAX}, kAsync));
  CHECK(same({.name = "ssp", .staleness = UINT64_MAX}, kAsync));
  CHECK(same({.name = "weedout", .window = UINT64_MAX}, kAsync));
}

TEST_CASE("ssp with staleness 0, and partial-sync with maxAdvance 1, are the rounds of sync") {
  CHECK(same({.name = "ssp", .staleness = 0}, kSync, Compared::kTrains, false));
  CHECK(same({.name = "partial-sync", .max_advance = 1}, kSync, Compared::kTrains, false));
}

TEST_CASE("one group is sync, groups of one are async") {
  CHECK(same({.name = "grouping", .groups = {{"host0", "host1", "host2"}}}, kSync));
  CHECK(same({.name = "grouping", .groups = {{"nobody"}}}, kAsync));
}

TEST_CASE("presets schedule like what they are made of") {
  CHECK(same({.name = "easgd"}, kAsync));
  CHECK(same({.name = "eamsgd"}, kAsync));
  CHECK(same({.name = "sync-easgd"}, kSync));
  CHECK(same({.name = "averaging"}, kSync));
}

}  // namespace speedo
