// Time: workers that are silent or stalled, and too few of them.

#include <algorithm>

#include <speedo/base/assert.hpp>

#include "train/master_session_impl.hpp"

namespace speedo {

// Messages that arrived while this process slept are only now being handled: nobody is to blame for
// that time.
void MasterSession::Impl::handle(const master_event::Tick& event) {
  const Instant last = last_tick_.value_or(event.now);
  last_tick_ = std::max(event.now, last);
  const Instant gap = *last_tick_ - last;
  if (gap <= kSleptThrough) {
    now_ += gap;
  } else {
    note(false, "this master slept for {} s; that time counts against nobody", seconds(gap));
  }
  watch_workers();
  watch_store();
  watch_shortage();
  retry_snapshot();
}

void MasterSession::Impl::handle(const master_event::Beat& event) {
  Worker* worker = find(event.peer, event.message.worker);
  if (worker == nullptr) {
    if (!open()) return;
    progress_.ignored += 1;
    if (peers_.contains(event.peer)) return;
    return refuse(event.peer, ErrorCode::kTimeout,
                  fmt::format("worker {} is not admitted any more; it may join again",
                              event.message.worker));
  }
  if (worker->run != RunId{event.message.run} || worker->progress == event.message.progress) return;
  worker->progress = event.message.progress;
  worker->progressed = now_;
}

void MasterSession::Impl::watch_workers() {
  if (!open()) return;
  const auto over = [](Instant silence, std::chrono::seconds limit) {
    return limit.count() != 0 && silence >= limit;
  };
  std::vector<std::pair<WorkerId, std::string>> dead;
  for (const auto& [id, worker] : workers_) {
    const std::string who = "worker " + worker.name;
    if (over(now_ - worker.heard, config_.worker_timeout)) {
      dead.emplace_back(id, fmt::format("{} has not been heard of for {} s (--worker-timeout)", who,
                                        config_.worker_timeout.count()));
    } else if (worker.run && over(now_ - worker.progressed, config_.stall_timeout)) {
      dead.emplace_back(id, fmt::format("{} is alive, but its run {} has made no progress for {} s "
                                        "(--stall-timeout)",
                                        who, worker.run->value, config_.stall_timeout.count()));
    }
  }
  for (const auto& [id, reason] : dead) declare_dead(id, reason);
}

void MasterSession::Impl::declare_dead(WorkerId id, const std::string& reason) {
  note(true, "{}; going on without it", reason);
  refuse(workers_.at(id).peer, ErrorCode::kTimeout, reason);
  remove(id, Departure::kFlap);
}

std::uint64_t MasterSession::Impl::wanted() const {
  return phase_ == Phase::kGathering ? config_.workers_start : config_.workers_min;
}

// Call when the number of workers or the phase has changed. What the strategy has ordered meanwhile
// goes out when training goes on, before what was ordered later.
void MasterSession::Impl::update_pause() {
  const bool paused = phase_ == Phase::kTraining && short_of_workers();
  if (progress_.workers_alive > 0) {
    alone_since_.reset();
  } else if (phase_ == Phase::kTraining && !alone_since_) {
    alone_since_ = now_;
  }
  if (paused == progress_.paused) return;
  progress_.paused = paused;
  if (paused) {
    short_since_ = short_noted_ = now_;
    return note_waiting();
  }
  short_since_.reset();
  if (phase_ != Phase::kTraining) return;
  note(false, "training goes on at iteration {} with {}", iteration(),
       count_workers(progress_.workers_alive));
  queue_.insert(queue_.begin(), held_.begin(), held_.end());
  held_.clear();
}

// Without enough workers: says so from time to time, and gives up in the end. While the store is
// away workers cannot make themselves ready: that time does not count.
void MasterSession::Impl::watch_shortage() {
  if (!short_of_workers() || store_absence_.is_away()) {
    short_since_.reset();
    if (store_absence_.is_away() && alone_since_) alone_since_ = now_;
    return;
  }
  if (!short_since_) short_since_ = short_noted_ = now_;
  const auto over = [this](const std::optional<Instant>& since, std::chrono::seconds limit) {
    return since && limit.count() != 0 && now_ - *since >= limit;
  };
  const bool gathering = phase_ == Phase::kGathering;
  if (over(gathering ? short_since_ : alone_since_, config_.join_timeout)) {
    return give_up_waiting(fmt::format(
        "{} of {} joined within {} s (--join-timeout); start more workers, or "
        "check that they can reach this master",
        progress_.workers_alive, count_workers(wanted()), config_.join_timeout.count()));
  }
  if (!gathering && over(short_since_, config_.below_min_timeout)) {
    return give_up_waiting(fmt::format(
        "training was paused for {} s with {} of at least {} (--below-min-timeout); start "
        "more workers and resume",
        config_.below_min_timeout.count(), progress_.workers_alive, count_workers(wanted())));
  }
  if (now_ - *short_noted_ < kWaitingNoteInterval) return;
  short_noted_ = now_;
  note_waiting();
}

void MasterSession::Impl::give_up_waiting(const std::string& reason) {
  begin_end({reason, Error{ErrorCode::kTimeout, reason}, false, progress_.training});
}

void MasterSession::Impl::note_waiting() {
  if (phase_ == Phase::kGathering && !last_failure_.empty()) {
    note(true, "waiting for workers: {} of {} are ready; {}", progress_.workers_alive, wanted(),
         last_failure_);
  } else if (phase_ == Phase::kGathering) {
    note(false, "waiting for workers: {} of {} are ready", progress_.workers_alive, wanted());
  } else if (progress_.workers_alive == 0) {
    note(true, "no worker is left at iteration {}; waiting for new ones", iteration());
  } else {
    note(true, "training pauses at iteration {}: {} of at least {} alive; waiting for more",
         iteration(), progress_.workers_alive, count_workers(wanted()));
  }
}

}  // namespace speedo
