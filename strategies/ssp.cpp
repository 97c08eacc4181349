// Stale synchronous parallel (Ho et al. 2013; Poseidon). A worker's clock is the number of runs it
// has finished. Whoever reports is merged at once. It may begin run t (from 0) only if the slowest
// live worker has finished t - s runs, s the staleness: so in run t it sees everything that anybody
// did in runs 0 .. t-1-s. Staleness 0 is rounds whose results are merged one by one.
//
// A newcomer's clock is that of the fastest worker, but no more than the slowest's plus s. So it
// starts at once and within the bound; and with s >= 1 nobody who is parked has to wait for it,
// however many newcomers come. A failed run counts like any other, else one bad worker would stop
// all. Who dies holds nobody back any more.
//
// Invariant: a live worker runs if its clock is within s of the slowest's, else it is parked, and
// then leads by exactly s + 1. The slowest always runs.

#include "ssp.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>

namespace speedo {

Commands Ssp::on(const Event& event) {
  if (const auto* e = std::get_if<Joined>(&event)) return joined(*e);
  if (const auto* e = std::get_if<Left>(&event)) return left(e->worker);
  if (const auto* e = std::get_if<Failed>(&event)) return reported(e->worker);
  const WorkerId worker = std::get<Trained>(event).worker;
  Commands commands{Merge{worker}};
  for (const Command& command : reported(worker)) commands.push_back(command);
  return commands;
}

Commands Ssp::joined(const Joined& event) {
  SPEEDO_ASSERT(!event.workers.empty());
  const std::uint64_t clock = newcomers_clock();
  Commands commands;
  for (const WorkerId worker : event.workers) {
    const bool inserted = clocks_.emplace(worker, clock).second;
    SPEEDO_ASSERT(inserted);
    commands.push_back(Train{worker});
  }
  return commands;
}

Commands Ssp::left(WorkerId worker) {
  const auto erased = clocks_.erase(worker);
  SPEEDO_ASSERT(erased == 1);
  parked_.erase(worker);
  return start_those_who_may();
}

Commands Ssp::reported(WorkerId worker) {
  const auto clock = clocks_.find(worker);
  SPEEDO_ASSERT(clock != clocks_.end());
  const bool parked = parked_.insert(worker).second;
  SPEEDO_ASSERT(parked);
  clock->second += 1;
  return start_those_who_may();
}

Commands Ssp::start_those_who_may() {
  Commands commands;
  if (parked_.empty()) return commands;
  const std::uint64_t slowest_clock = slowest();
  for (auto worker = parked_.begin(); worker != parked_.end();) {
    if (clocks_.at(*worker) - slowest_clock > staleness_) {
      ++worker;
      continue;
    }
    commands.push_back(Train{*worker});
    worker = parked_.erase(worker);
  }
  return commands;
}

std::uint64_t Ssp::slowest() const {
  return std::ranges::min_element(clocks_, {}, [](const auto& each) { return each.second; })
      ->second;
}

std::uint64_t Ssp::newcomers_clock() const {
  if (clocks_.empty()) return 0;
  const auto [slowest, fastest] = std::ranges::minmax_element(
      clocks_, {}, [](const auto& each) { return each.second; });
  const std::uint64_t lead = fastest->second - slowest->second;
  return slowest->second + std::min(lead, staleness_);
}

std::unique_ptr<Strategy> make_ssp(const StrategyOptions& options) {
  return std::make_unique<Ssp>(options.staleness);
}

}  // namespace speedo
