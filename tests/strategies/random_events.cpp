#include "random_events.hpp"

#include <algorithm>
#include <iterator>

#include "support/random_property.hpp"
#include "trace.hpp"

namespace speedo {

namespace {

#ifdef SPEEDO_SANITIZED
constexpr test::PropertySize kSize{.sequences = 1000};
#else
constexpr test::PropertySize kSize{.sequences = 10'000};
#endif

// Small numbers are as random as large ones, and 0 is 0.
std::uint32_t mixed(std::uint32_t x) {
  x ^= x >> 16U;
  x *= 0x7FEB352DU;
  x ^= x >> 15U;
  x *= 0x846CA68BU;
  return x ^ (x >> 16U);
}

std::string name_of(std::uint64_t worker) {
  return "host" + std::to_string(worker % 3) + "/1/" + std::to_string(worker);
}

std::string sorted_text(std::string text) {
  std::vector<std::string> parts;
  for (std::size_t end; (end = text.find(", ")) != std::string::npos; text.erase(0, end + 2)) {
    parts.push_back(text.substr(0, end));
  }
  parts.push_back(text);
  std::ranges::sort(parts);
  std::string sorted;
  for (const std::string& part : parts) sorted += (sorted.empty() ? "" : ", ") + part;
  return sorted;
}

}  // namespace

std::string World::apply(const Commands& commands) {
  const auto decide = [&](WorkerId worker) { return pending.erase(worker.value) == 1; };
  for (const Command& command : commands) {
    bool right = true;
    if (const auto* merge = std::get_if<Merge>(&command)) right = decide(merge->worker);
    if (const auto* discard = std::get_if<Discard>(&command)) right = decide(discard->worker);
    if (const auto* average = std::get_if<Average>(&command)) {
      right = !average->workers.empty() && std::ranges::all_of(average->workers, decide);
    }
    if (const auto* train = std::get_if<Train>(&command)) {
      const std::uint64_t worker = train->worker.value;
      right = alive.contains(worker) && !pending.contains(worker) && running.insert(worker).second;
    }
    if (!right) return "illegal command: " + to_text(command);
  }
  if (running.empty() && alive.size() >= least) return "workers live, and nobody runs";
  return {};
}

Event next_event(World& world, std::uint32_t random, bool joins) {
  const std::uint32_t bits = mixed(random);
  const unsigned kind = bits % 16;
  const unsigned choice = bits / 16 % 4096;
  const auto pick = [&](const Ids& from) {
    return *std::next(from.begin(), static_cast<std::ptrdiff_t>(choice % from.size()));
  };
  const bool nobody_else_can = world.alive.empty() || (world.running.empty() && kind >= 3);
  if (nobody_else_can || (joins && kind < 2 && world.alive.size() < 8)) {
    std::vector<std::uint64_t> ids;
    std::vector<std::string> names;
    const std::size_t most = std::min<std::size_t>(8 - world.alive.size(), 4);
    for (std::size_t i = 0; i <= choice % most; ++i) {
      names.push_back(name_of(world.next));
      ids.push_back(world.next++);
    }
    world.alive.insert(ids.begin(), ids.end());
    return joined(ids, names);
  }
  if (kind < 3) {
    const std::uint64_t worker = pick(world.alive);
    world.alive.erase(worker);
    world.running.erase(worker);
    return left(worker);
  }
  const std::uint64_t worker = pick(world.running);
  world.running.erase(worker);
  if (kind == 3) return failed(worker);
  world.pending.insert(worker);
  const std::uint64_t usual[] = {100, 110, 300};
  return trained(worker, usual[worker % 3] + bits / 65536 % 16);
}

std::string compare(Strategy& strategy, const Model& model, const Randoms& randoms, bool sorted,
                    std::uint64_t least) {
  World world;
  world.least = least;
  std::string history;
  for (const std::uint32_t random : randoms) {
    const Event event = next_event(world, random);
    const Commands commands = strategy.on(event);
    const std::string given = to_text(commands);
    const std::string expected = model(event);
    history += " | " + given;
    const bool same = sorted ? sorted_text(given) == sorted_text(expected) : given == expected;
    if (!same) return "expected '" + expected + "' at the end of" + history;
    if (const std::string wrong = world.apply(commands); !wrong.empty()) return wrong + history;
  }
  return {};
}

bool holds(const std::function<std::string(const Randoms&, std::uint32_t)>& property) {
  return test::holds_for_seeds({20261121}, kSize,
                               [&](const Randoms& randoms, std::uint32_t random) {
                                 const std::string wrong = property(randoms, mixed(random));
                                 if (!wrong.empty()) RC_FAIL(wrong);
                               });
}

}  // namespace speedo
