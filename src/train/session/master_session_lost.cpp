// The master's session: contributions that were not merged. What the store has lost of a round is
// done again before the round is merged, by its worker; else its data are given out again. An
// elastic worker has them in weights of its own, and takes them along: nothing is done again.

#include <utility>

#include <speedo/base/assert.hpp>

#include "train/session/master_session_impl.hpp"

namespace speedo {

bool MasterSession::Impl::waits_for_lost(const MergeOrder& merge) const {
  return merge.mean && !is_kept_by_worker();
}

void MasterSession::Impl::note_left_out(const Contribution& contribution,
                                        const master_event::Merged& event, const char* then) {
  tally_.rejected(1);
  figures_.dropped(contribution.worker);
  const char* const what =
      is_among(event.outliers, contribution.worker)     ? "far larger than those before"
      : is_among(event.not_finite, contribution.worker) ? "not finite"
                                                        : "lost by the store, or damaged there";
  const std::string line = fmt::format("the contribution of worker {} (run {}) is {}",
                                       contribution.worker.value, contribution.run.value, what);
  out_.note(true, "{}; {}", line, then);
  if (!is_among(event.outliers, contribution.worker)) fault_ = line;
}

// What the merger has rejected. Contributions that were too large are no sign of divergence.
void MasterSession::Impl::leave_out(const MergeOrder& merge, const master_event::Merged& event) {
  const std::vector<WorkerId> lost_of = lost_in(event);
  std::vector<RunId> lost;
  for (const Contribution& each : merge.contributions) {
    if (!is_among(event.rejected, each.worker)) continue;
    const bool is_lost = is_among(lost_of, each.worker);
    if (is_lost) lost.push_back(each.run);
    if (is_lost && !is_kept_by_worker()) {
      note_left_out(each, event, "its data are given out again");
      leases_.free_reported(each.data);
      continue;
    }
    note_left_out(each, event,
                  is_lost ? "left out; the worker keeps what it has trained" : "left out");
    leases_.use_up(each.data);
    if (is_among(event.not_finite, each.worker)) divergence_.not_finite();
  }
  divergence_.rejected(lost, runs_.next());
}

// The others' contributions are merged with those that come in place of the lost ones. Of a mean
// outside rounds, which others do not wait for, nothing is done again.
void MasterSession::Impl::put_off(MergeOrder merge, const master_event::Merged& event) {
  std::set<WorkerId> again;
  std::vector<RunId> lost;
  for (auto each = merge.contributions.begin(); each != merge.contributions.end();) {
    if (!is_among(event.rejected, each->worker)) {
      ++each;
      continue;
    }
    lost.push_back(each->run);
    if (can_train_again(each->worker)) {
      note_left_out(*each, event, "its run is done again");
      again.insert((each++)->worker);
    } else {
      note_left_out(*each, event, "its data are given out again");
      leases_.free_reported(each->data);
      each = merge.contributions.erase(each);
    }
  }
  divergence_.rejected(lost, runs_.next());
  end_if_diverged();
  if (open() && !merge.contributions.empty()) {
    lost_runs_.begin(std::move(merge), std::move(again));
  }
}

// Where a contribution and its worker are both lost nobody does the run again.
void MasterSession::Impl::note_short_round(const MergeOrder& merge) {
  const std::uint64_t exact = schedule().strategy.exact_workers;
  if (merge.contributions.size() >= exact) return;
  out_.note(true,
            "the round of iteration {} is merged with {} of its {} runs, as others were lost with "
            "their workers: from here on the weights are not those of an undisturbed job",
            iteration(), merge.contributions.size(), exact);
}

bool MasterSession::Impl::can_train_again(WorkerId id) const {
  const Membership::Member* const member = members_.find(id);
  return member != nullptr && member->ready && open() && stages_.is_training() &&
         stages_.trains_in_rounds() && !runs_.is_busy(id);
}

void MasterSession::Impl::train_lost_again() {
  if (!shortage_.paused()) {
    for (const Contribution& each : lost_runs_.take_unordered()) {
      send_train(each.worker, leases_.train_again(each.worker, each.data));
    }
  }
  auto merge = lost_runs_.take_complete();
  if (!merge || merge->contributions.empty()) return;
  note_short_round(*merge);
  work_.merge_first(std::move(*merge));
}

// Its worker is gone, or the run came to nothing.
void MasterSession::Impl::give_up_lost(WorkerId id) {
  const auto lost = lost_runs_.give_up(id);
  if (lost) leases_.free_reported(lost->data);
}

}  // namespace speedo
