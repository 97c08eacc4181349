// Weed-out (SpeeDO's "drop"). The last n who reported form a ring, n = max(window, workers at the
// start). Until the ring is full every result is merged. Then a result is merged only if its sender
// is in the ring: otherwise n others were heard since it last was, and what it computed is too
// old. In any case the sender replaces the oldest entry and starts again from the newest weights. A
// dropped result is no iteration.
//
// A newcomer is put in as the oldest, and the ring grows by one; a death removes the oldest,
// whoever that is, and the ring shrinks by one. A failed run is treated like a dropped one: its
// worker starts from the newest weights, so what it sends next is in time.
//
// Invariant: every live worker has exactly one run outstanding.
// Invariant: the ring has a place for each live worker, so it is never of size 0 when one reports.

#include "weedout.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>

namespace speedo {

Weedout::Weedout(std::uint64_t window) : window_(window) { SPEEDO_ASSERT(window >= 1); }

Commands Weedout::on(const Event& event) {
  if (const auto* e = std::get_if<Joined>(&event)) return joined(*e);
  if (const auto* e = std::get_if<Left>(&event)) return left(e->worker);
  if (const auto* e = std::get_if<Failed>(&event)) {
    report(e->worker);
    return {Train{e->worker}};
  }
  const WorkerId worker = std::get<Trained>(event).worker;
  if (report(worker)) return {Merge{worker}, Train{worker}};
  return {Discard{worker}, Train{worker}};
}

Commands Weedout::joined(const Joined& event) {
  SPEEDO_ASSERT(!event.workers.empty());
  const bool start = !begun_;
  if (start) vacant_ = std::max<std::uint64_t>(window_, event.workers.size());
  begun_ = true;
  Commands commands;
  for (const WorkerId worker : event.workers) {
    if (!start) place_[worker] = --oldest_;
    commands.push_back(Train{worker});
  }
  return commands;
}

Commands Weedout::left(WorkerId worker) {
  place_.erase(worker);
  if (oldest_ == next_) {
    SPEEDO_ASSERT(vacant_ > 0);
    vacant_ -= 1;
  } else {
    drop_oldest();
  }
  return {};
}

bool Weedout::report(WorkerId worker) {
  const bool full = vacant_ == 0;
  const bool in_time = !full || place_.contains(worker);
  if (full) {
    drop_oldest();
  } else {
    vacant_ -= 1;
  }
  place_[worker] = next_++;
  return in_time;
}

void Weedout::drop_oldest() {
  SPEEDO_ASSERT(oldest_ < next_);
  std::erase_if(place_, [&](const auto& each) { return each.second == oldest_; });
  oldest_ += 1;
}

Result<void> check_weedout(const StrategyOptions& options) {
  if (options.window >= 1) return {};
  return Error{ErrorCode::kUsage,
               "strategy 'weedout' needs --weedout N with N of at least 1: the last reporters "
               "whose results are in time"};
}

std::unique_ptr<Strategy> make_weedout(const StrategyOptions& options) {
  return std::make_unique<Weedout>(options.window);
}

}  // namespace speedo
