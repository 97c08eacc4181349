// Random sequences of events against models that share no code with the strategies. RC_PARAMS in
// the environment changes the seed and the number of sequences.

#include <cstdlib>
#include <map>
#include <set>

#include <rapidcheck.h>

#include "support/catch.hpp"

#include "trace.hpp"

namespace speedo {

namespace {

#ifdef SPEEDO_SANITIZED
constexpr const char* kParameters = "max_success=1000 seed=20261121";
#else
constexpr const char* kParameters = "max_success=10000 seed=20261121";
#endif
const int kParametersSet = setenv("RC_PARAMS", kParameters, 0);

using Ids = std::set<std::uint64_t>;

// What holds for every strategy: who may be told to train, what may be merged.
struct World {
  Ids alive, running, pending;   // pending: reported, not yet decided on
  std::uint64_t next = 0;

  void apply(const Command& command) {
    if (const auto* c = std::get_if<Merge>(&command)) return decide(c->worker.value);
    if (const auto* c = std::get_if<Discard>(&command)) return decide(c->worker.value);
    if (const auto* c = std::get_if<Average>(&command)) {
      RC_ASSERT(!c->workers.empty());
      for (const WorkerId worker : c->workers) decide(worker.value);
      return;
    }
    const std::uint64_t worker = std::get<Train>(command).worker.value;
    RC_ASSERT(alive.contains(worker));
    RC_ASSERT(running.insert(worker).second);
    RC_ASSERT(!pending.contains(worker));
  }
  void decide(std::uint64_t worker) { RC_ASSERT(pending.erase(worker) == 1U); }
};

// Turns a random number into an event that is legal in this world, and applies the event to it.
Event next_event(World& world, std::uint16_t random) {
  const unsigned kind = random % 16;
  const auto pick = [&](Ids& from) {
    auto it = from.begin();
    std::advance(it, (random / 16) % from.size());
    return *it;
  };
  if (world.alive.empty() || (kind < 2 && world.alive.size() < 8)) {
    std::vector<std::uint64_t> ids;
    for (unsigned i = 0; i <= (random / 16) % 3; ++i) ids.push_back(world.next++);
    world.alive.insert(ids.begin(), ids.end());
    return joined(ids);
  }
  if (kind < 4 || world.running.empty()) {
    const std::uint64_t worker = pick(world.alive);
    world.alive.erase(worker);
    world.running.erase(worker);
    return left(worker);
  }
  const std::uint64_t worker = pick(world.running);
  world.running.erase(worker);
  if (kind == 4) return failed(worker);
  world.pending.insert(worker);
  return trained(worker);
}

}  // namespace

TEST_CASE("async under random events: merged at once, everyone alive is running") {
  CHECK(rc::check([](const std::vector<std::uint16_t>& randoms) {
    const auto async = strategy_named("async");
    World world;
    for (const std::uint16_t random : randoms) {
      const Event event = next_event(world, random);
      for (const Command& command : async->on(event)) {
        RC_ASSERT(!std::holds_alternative<Average>(command));
        RC_ASSERT(!std::holds_alternative<Discard>(command));
        world.apply(command);
      }
      RC_ASSERT(world.pending.empty());
      RC_ASSERT(world.running == world.alive);
    }
  }));
}

TEST_CASE("sync under random events: an average holds exactly the round's reports") {
  CHECK(rc::check([](const std::vector<std::uint16_t>& randoms) {
    const auto sync = strategy_named("sync");
    World world;
    Ids reported;                       // since the round began
    for (const std::uint16_t random : randoms) {
      const Event event = next_event(world, random);
      if (const auto* e = std::get_if<Trained>(&event)) reported.insert(e->worker.value);
      const bool over = world.running.empty();   // nobody of the round is left at work
      bool averaged = false;
      Ids started;
      for (const Command& command : sync->on(event)) {
        if (const auto* average = std::get_if<Average>(&command)) {
          Ids members;
          for (const WorkerId worker : average->workers) members.insert(worker.value);
          RC_ASSERT(over);
          RC_ASSERT(!averaged);
          RC_ASSERT(started.empty());
          RC_ASSERT(members == reported);
          averaged = true;
        } else {
          started.insert(std::get<Train>(command).worker.value);
        }
        world.apply(command);
      }
      RC_ASSERT(averaged == (over && !reported.empty()));
      RC_ASSERT(started == (over ? world.alive : Ids()));
      if (over) reported.clear();
      RC_ASSERT(world.running.empty() == world.alive.empty());
    }
  }));
}

TEST_CASE("saving and restoring at any moment changes nothing that follows") {
  for (const char* name : {"async", "sync"}) {
    CHECK(rc::check([name](const std::vector<std::uint16_t>& randoms) {
      const auto steady = strategy_named(name);
      auto restored = strategy_named(name);
      World world;
      for (const std::uint16_t random : randoms) {
        const std::string state = restored->save();
        restored = strategy_named(name);
        RC_ASSERT(restored->restore(state).has_value());
        const Event event = next_event(world, random);
        const Commands commands = steady->on(event);
        RC_ASSERT(to_text(restored->on(event)) == to_text(commands));
        for (const Command& command : commands) world.apply(command);
      }
    }));
  }
}

}  // namespace speedo
