// Partial synchronisation (SpeeDO). Every worker has a counter, 1 at first. Whoever reports is
// merged, counted and started again, until the largest counter leads the smallest by max_advance_.
// Then all must catch up: every worker but the one whose report used the lead up reports once more,
// is merged and waits. When the last of them has, all counters return to 1 and all start together.
//
// A newcomer's counter is the largest one, so that it starts no catch-up and is not soon stopped by
// one; during a catch-up it waits for the end. Who dies is no longer awaited. A failed run counts
// like any other, else one bad worker would hold up all; only nothing is merged.
//
// Invariant: outside a catch-up every live worker runs, and the lead is below max_advance_.
// Invariant: in a catch-up exactly the awaited workers run; there is always at least one.

#include "partial_sync.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>

namespace speedo {

PartialSync::PartialSync(std::uint64_t max_advance) : max_advance_(max_advance) {
  SPEEDO_ASSERT(max_advance >= 1);
}

Commands PartialSync::on(const Event& event) {
  if (const auto* e = std::get_if<Joined>(&event)) return joined(*e);
  if (const auto* e = std::get_if<Left>(&event)) return left(e->worker);
  if (const auto* e = std::get_if<Failed>(&event)) return reported(e->worker);
  const WorkerId worker = std::get<Trained>(event).worker;
  Commands commands{Merge{worker}};
  for (const Command& command : reported(worker)) commands.push_back(command);
  return commands;
}

Commands PartialSync::joined(const Joined& event) {
  SPEEDO_ASSERT(!event.workers.empty());
  const std::uint64_t counter = counters_.empty() ? 1 : fastest();
  Commands commands;
  for (const WorkerId worker : event.workers) {
    const bool inserted = counters_.emplace(worker, counter).second;
    SPEEDO_ASSERT(inserted);
    if (!in_catch_up()) commands.push_back(Train{worker});
  }
  return commands;
}

Commands PartialSync::left(WorkerId worker) {
  const auto erased = counters_.erase(worker);
  SPEEDO_ASSERT(erased == 1);
  const bool last = awaited_.erase(worker) == 1 && !in_catch_up();
  return last ? caught_up() : Commands{};
}

Commands PartialSync::reported(WorkerId worker) {
  const auto counter = counters_.find(worker);
  SPEEDO_ASSERT(counter != counters_.end());
  if (in_catch_up()) {
    const auto erased = awaited_.erase(worker);
    SPEEDO_ASSERT(erased == 1);
    return in_catch_up() ? Commands{} : caught_up();
  }
  counter->second += 1;
  if (lead() < max_advance_) return {Train{worker}};
  for (const auto& [other, runs] : counters_) {
    if (other != worker) awaited_.insert(other);
  }
  SPEEDO_ASSERT(in_catch_up());
  return {};
}

Commands PartialSync::caught_up() {
  Commands commands;
  for (auto& [worker, counter] : counters_) {
    counter = 1;
    commands.push_back(Train{worker});
  }
  return commands;
}

std::uint64_t PartialSync::fastest() const {
  return std::ranges::max_element(counters_, {}, [](const auto& each) { return each.second; })
      ->second;
}

std::uint64_t PartialSync::lead() const {
  const auto [slowest, fastest] = std::ranges::minmax_element(
      counters_, {}, [](const auto& each) { return each.second; });
  return fastest->second - slowest->second;
}

Result<void> check_partial_sync(const StrategyOptions& options) {
  if (options.max_advance >= 1) return {};
  return Error{ErrorCode::kUsage,
               "strategy 'partial-sync' needs --max-advance N with N of at least 1: the lead at "
               "which the others must catch up"};
}

std::unique_ptr<Strategy> make_partial_sync(const StrategyOptions& options) {
  return std::make_unique<PartialSync>(options.max_advance);
}

}  // namespace speedo
