#pragma once

#include <memory>
#include <vector>

#include <speedo/train/strategy.hpp>

namespace speedo {

// Schedules that are wrong in one way each, to prove that whoever watches them would notice.
struct BrokenStrategy {
  const char* name;         // says what is wrong
  const char* instead_of;   // the schedule whose rule it breaks; everything else is as there
  std::unique_ptr<Strategy> (*make)(const StrategyOptions& options);
};

// merge-twice          async        merges every fifth contribution a second time
// forget-dead          sync         goes on waiting for a worker that died during a round
// lead-off-by-one      ssp          lets a worker lead by one run more than the staleness
// advance-off-by-one   partial-sync starts the catch-up at a lead of max_advance + 1
// merge-the-late       weedout      merges what it has to drop
// average-without-one  sync         leaves one of several contributors out of each average
// forget-parked        partial-sync leaves a worker that joined during a catch-up waiting after it
const std::vector<BrokenStrategy>& broken_strategies();

// Requires: `name` is one of them.
std::unique_ptr<Strategy> make_broken(const char* name, const StrategyOptions& options);

}  // namespace speedo
