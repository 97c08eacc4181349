// Asynchronous SGD (Dean et al. 2012, "Downpour"). Whoever reports is merged and trains again from
// the weights that result; nobody waits for anybody. A worker computes on weights that lack what
// others merged meanwhile: with n equal workers a contribution is n - 1 versions old on average.
//
// Invariant: every live worker has exactly one run outstanding.
// With one worker this is sequential SGD.

#include "async.hpp"

#include <speedo/base/assert.hpp>

namespace speedo {

Commands Async::on(const Event& event) {
  if (const auto* e = std::get_if<Joined>(&event)) return joined(*e);
  if (const auto* e = std::get_if<Left>(&event)) return left(e->worker);
  if (const auto* e = std::get_if<Failed>(&event)) return failed(e->worker);
  return trained(std::get<Trained>(event).worker);
}

Commands Async::joined(const Joined& event) {
  SPEEDO_ASSERT(!event.workers.empty());
  Commands commands;
  for (const WorkerId worker : event.workers) {
    const bool inserted = running_.insert(worker).second;
    SPEEDO_ASSERT(inserted);
    commands.push_back(Train{worker});
  }
  return commands;
}

Commands Async::left(WorkerId worker) {
  const auto erased = running_.erase(worker);
  SPEEDO_ASSERT(erased == 1);
  return {};
}

Commands Async::trained(WorkerId worker) {
  SPEEDO_ASSERT(running_.contains(worker));
  return {Merge{worker}, Train{worker}};
}

Commands Async::failed(WorkerId worker) {
  SPEEDO_ASSERT(running_.contains(worker));
  return {Train{worker}};
}

std::unique_ptr<Strategy> make_async(const StrategyOptions& /*options*/) {
  return std::make_unique<Async>();
}

}  // namespace speedo
