#pragma once

// Random sequences of events that a session could send, and what holds for every strategy.

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <speedo/train/strategy.hpp>

namespace speedo {

using Ids = std::set<std::uint64_t>;

// The workers as the session sees them.
struct World {
  Ids alive, running, pending;   // pending: reported, not yet decided on
  std::uint64_t next = 0;
  std::uint64_t least = 1;       // workers that a round needs

  // What is wrong with these commands here, or nothing. Applies those that are right.
  std::string apply(const Commands& commands);
};

// A random event that is legal in this world, applied to it: several joining, leaving, reports,
// failures. At most eight workers live at once. Worker k is called "host<k mod 3>/1/<k>" and takes
// about 100, 110 or 300 us for a sample, by k modulo 3. `joins`: also after the first event.
Event next_event(World& world, std::uint32_t random, bool joins = true);

using Randoms = std::vector<std::uint32_t>;

// A model says what a strategy has to answer, in the notation of trace.hpp.
using Model = std::function<std::string(const Event&)>;

// Runs a strategy beside its model. Returns the first difference or breach, or nothing. `sorted`:
// the order of commands does not matter beyond what World demands; `least`: see there.
std::string compare(Strategy& strategy, const Model& model, const Randoms& randoms,
                    bool sorted = false, std::uint64_t least = 1);

// Checks with rapidcheck that `property` of random sequences and a random number returns nothing.
// With the seed that is kept and a fresh one, see support/random_seed.hpp.
bool holds(const std::function<std::string(const Randoms&, std::uint32_t)>& property);

}  // namespace speedo
