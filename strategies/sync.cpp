// Synchronous SGD. In a round every worker trains once from the same weights. When the last one
// that is awaited has reported, the mean of the contributions is merged as one iteration, and all
// start again. With the gradient rule, n workers of batch b are one worker of batch n b.
//
// A worker that joins during a round starts with the next one. One that dies is no longer awaited,
// which may end the round; if it had reported before, its contribution counts: it lies in the
// store, whole, and the work was done. A run that failed leaves no contribution. A round without
// any contribution merges nothing; with nobody alive no round begins until somebody joins.
//
// Invariant: awaited_ is a subset of alive_, and is empty only if alive_ is.
// Invariant: contributed_ and awaited_ are disjoint.

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
  return awaited_.empty() ? start_round() : Commands{};
}

Commands Sync::left(WorkerId worker) {
  const auto erased = alive_.erase(worker);
  SPEEDO_ASSERT(erased == 1);
  const bool last = awaited_.erase(worker) == 1 && awaited_.empty();
  return last ? end_round() : Commands{};
}

Commands Sync::reported(WorkerId worker) {
  const auto erased = awaited_.erase(worker);
  SPEEDO_ASSERT(erased == 1);
  return awaited_.empty() ? end_round() : Commands{};
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
  awaited_ = alive_;
  Commands commands;
  for (const WorkerId worker : awaited_) commands.push_back(Train{worker});
  return commands;
}

std::unique_ptr<Strategy> make_sync(const StrategyOptions& /*options*/) {
  return std::make_unique<Sync>();
}

}  // namespace speedo
