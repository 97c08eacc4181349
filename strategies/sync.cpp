// Synchronous SGD. In a round every worker trains once from the same weights. When the last one
// that is awaited has reported, the mean of the contributions is merged as one iteration, and all
// start again. With the gradient rule, n workers of batch b are one worker of batch n b.
//
// A worker that joins during a round starts with the next one. One that dies is no longer awaited,
// which may end the round; if it had reported before, its contribution counts: it lies in the
// store, whole, and the work was done. A run that failed leaves no contribution. A round without
// any contribution merges nothing; with nobody alive no round begins until somebody joins.
//
// With `exact_workers` a round has so many runs, whatever happens: it begins when so many are
// there, and what a worker that dies owes it is left to one that is not in the round, or joins.
//
// Invariant: awaited_ is a subset of alive_ and of in_round_. Without exact_workers_ it is empty
// only if alive_ is, and nothing is missing.
// Invariant: contributed_ is a subset of in_round_, and disjoint from awaited_.

#include "sync.hpp"

#include <speedo/base/assert.hpp>

namespace speedo {

Commands Sync::on(const Event& event) {
  if (const auto* e = std::get_if<Joined>(&event)) return joined(*e);
  if (const auto* e = std::get_if<Left>(&event)) return left(e->worker);
  if (const auto* e = std::get_if<Failed>(&event)) return reported(e->worker);
  const WorkerId worker = std::get<Trained>(event).worker;
  contributed_.insert(worker);
  return reported(worker);
}

Commands Sync::joined(const Joined& event) {
  SPEEDO_ASSERT(!event.workers.empty());
  for (const WorkerId worker : event.workers) {
    const bool inserted = alive_.insert(worker).second;
    SPEEDO_ASSERT(inserted);
  }
  return is_open() ? take_over() : start_round();
}

Commands Sync::left(WorkerId worker) {
  const auto erased = alive_.erase(worker);
  SPEEDO_ASSERT(erased == 1);
  if (awaited_.erase(worker) == 0) return {};
  if (exact_workers_ != 0) missing_ += 1;
  return is_open() ? take_over() : end_round();
}

Commands Sync::take_over() {
  Commands commands;
  for (const WorkerId worker : alive_) {
    if (missing_ == 0) break;
    if (!in_round_.insert(worker).second) continue;
    awaited_.insert(worker);
    missing_ -= 1;
    commands.push_back(Train{worker});
  }
  return commands;
}

Commands Sync::reported(WorkerId worker) {
  const auto erased = awaited_.erase(worker);
  SPEEDO_ASSERT(erased == 1);
  return is_open() ? Commands{} : end_round();
}

Commands Sync::end_round() {
  Commands commands;
  if (!contributed_.empty()) {
    commands.push_back(Average{{contributed_.begin(), contributed_.end()}});
    contributed_.clear();
  }
  for (const Command& command : start_round()) commands.push_back(command);
  return commands;
}

Commands Sync::start_round() {
  if (alive_.size() < exact_workers_) return {};
  in_round_.clear();
  missing_ = exact_workers_ != 0 ? exact_workers_ : alive_.size();
  return take_over();
}

std::unique_ptr<Strategy> make_sync(const StrategyOptions& options) {
  return std::make_unique<Sync>(options.exact_workers);
}

}  // namespace speedo
