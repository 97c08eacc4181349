// The master's session: tests and snapshots, the store, the end.

#include <utility>

#include <speedo/base/assert.hpp>

#include "train/note_text.hpp"
#include "train/session/master_session_impl.hpp"

namespace speedo {

void MasterSession::Impl::start_due_jobs() {
  const bool saves = jobs_.start_due({iteration(), !divergence_.is_suspected(),
                                      ending_ ? ending_->last_test(iteration()) : std::nullopt},
                                     out_);
  if (saves && config_.snapshot_workers) ask_for_states();
}

// Whether a job was of the iteration at which training ended.
bool MasterSession::Impl::is_last(std::optional<std::uint64_t> iteration_of_job) const {
  return phase_ == Phase::kFinishing && iteration_of_job == iteration();
}

void MasterSession::Impl::handle(const master_event::Tested& event) {
  jobs_.tested(event);
  if (event.diverged && !is_last(event.iteration)) {
    out_.note(true, "{}", diverged_test(event.iteration));
  }
}

void MasterSession::Impl::handle(const master_event::TestFailed& event) {
  const auto at = jobs_.test_failed();
  if (is_last(at) && ending_->waits_for_test()) {
    return ending_->last_test_failed(event.error, out_);
  }
  out_.note(true, "the test at iteration {} failed: {}", at.value_or(iteration()),
            event.error.message);
}

void MasterSession::Impl::handle(const master_event::SnapshotDone& /*event*/) {
  jobs_.snapshot_done();
}

void MasterSession::Impl::handle(const master_event::SnapshotFailed& event) {
  const auto at = jobs_.snapshot_failed();
  if (is_last(at)) {
    return ending_->last_snapshot_failed(event.error, iteration(), clock_.now(), out_);
  }
  out_.note(true, "the snapshot at iteration {} failed: {}", at.value_or(iteration()),
            event.error.message);
}

void MasterSession::Impl::handle(const master_event::SnapshotRequested& /*event*/) {
  const bool has_news = is_training() && iteration() > tally_.first_iteration();
  const char* remark = "";
  if (!has_news) {
    remark = ", but nothing was trained yet";
  } else if (divergence_.is_suspected()) {
    remark = "; it waits for a run with a finite loss";
  }
  out_.note(false, "a snapshot was asked for{}", remark);
  jobs_.wish_snapshot(has_news);
}

// The weights are in memory: training goes on once the store is back.
void MasterSession::Impl::handle(const master_event::StoreLost& event) {
  const Error& error = event.error;
  if (error.code == ErrorCode::kSuperseded) return fail(error);
  if (!open()) return;
  if (!is_transient(error.code) || config_.store_timeout.count() == 0) return fail(error);
  const auto line =
      store_absence_.lost(error, clock_.now(), fmt::format("at iteration {}", iteration()));
  if (line) out_.note(true, "{}", *line);
}

void MasterSession::Impl::handle(const master_event::StoreBack& /*event*/) {
  const auto away = store_absence_.back(clock_.now());
  if (!away) return;
  const std::string then =
      open() ? fmt::format("; training goes on at iteration {}", iteration()) : "";
  out_.note(false, "the store is back after {} s{}", whole_seconds(*away), then);
}

void MasterSession::Impl::watch_store() {
  if (!open()) return;
  if (const auto error = store_absence_.given_up(clock_.now())) return fail(*error);
  if (const auto line = store_absence_.line(clock_.now())) out_.note(true, "{}", *line);
}

void MasterSession::Impl::handle(const master_event::StopRequested& event) {
  if (!open()) {
    states_.break_off(out_);
    send_all_away();
    ending_->hurry(clock_.now(), jobs_);
    return ending_->retry(iteration(), clock_.now(), jobs_);
  }
  states_.hurry(config_.stop_patience);
  const bool snapshot = is_training() && (event.snapshot || config_.snapshot_at_end);
  begin_end({"stopped: " + event.reason, std::nullopt, false, snapshot, true});
}

void MasterSession::Impl::end_if_diverged() {
  if (!open() || !divergence_.is_certain()) return;
  if (!divergence_.is_suspected()) return end_as_store_loses();
  const std::string runs = config_.non_finite_max == 1
                               ? "a run was not finite, and --on-nan says abort"
                               : fmt::format("training diverged: {} runs in a row without a finite "
                                             "loss and contribution",
                                             divergence_.in_row());
  const std::string reason =
      fmt::format("{}, at iteration {} ({}); lower base_lr, set clip_gradients or check the data",
                  runs, iteration(), fault_);
  begin_end({reason, Error{ErrorCode::kNotFinite, reason}, false, false});
}

// The weights are sound.
void MasterSession::Impl::end_as_store_loses() {
  fail({ErrorCode::kUnavailable,
        fmt::format("the store has lost contributions {} times in a row, and nothing was merged in "
                    "between, at iteration {} ({}); see whether it restarts, fails over or evicts "
                    "what it has",
                    divergence_.in_row(), iteration(), fault_)});
}

// What trained so far is in memory, so a snapshot can still be written.
void MasterSession::Impl::fail(const Error& error) {
  if (error.code == ErrorCode::kSuperseded) return end_superseded(error);
  if (!open()) return ending_->fail(error, out_);
  begin_end({"the master cannot go on: " + error.message, error, false, is_training()});
}

// Nothing more is written, and the workers look for the new master.
void MasterSession::Impl::end_superseded(const Error& error) {
  const std::string reason = "another master has taken this job over; look for it";
  if (open()) {
    for (const auto& [id, member] : members_.all()) {
      out_.refuse(member.peer, ErrorCode::kUnavailable, reason);
    }
  }
  work_.clear();
  lost_runs_.clear();
  shortage_.end();
  phase_ = Phase::kFinished;
  out_.add(master_command::Finish{error});
}

// No new work from here on. A merge under way is waited for; runs under way are let go, and what is
// reported and not merged stays open: it is given out again by a master that goes on from here.
void MasterSession::Impl::begin_end(Ending::Plan plan) {
  SPEEDO_ASSERT(open());
  phase_ = Phase::kFinishing;
  shortage_.end();
  work_.clear();
  lost_runs_.clear();
  jobs_.wish_snapshot(false);
  if (plan.error && plan.error->code == ErrorCode::kNotFinite) jobs_.cancel_snapshots();
  if (plan.snapshot && divergence_.is_suspected()) {
    out_.note(true,
              "{} run{} since iteration {} had no finite loss: its snapshot may be of a training "
              "that has diverged",
              divergence_.in_row(), divergence_.in_row() == 1 ? "" : "s", iteration());
  }
  ending_.emplace(std::move(plan));
  ending_->announce(out_);
  if (!gathers_at_end()) {
    states_.break_off(out_);
    send_all_away();
  }
  out_.add(master_command::StopWaitingForStore{});
}

void MasterSession::Impl::send_all_away() {
  if (std::exchange(workers_are_sent_away_, true)) return;
  for (const auto& [id, member] : members_.all()) ending_->send_away(member.peer, out_);
}

// A master that begins at the end may be there for the last snapshot alone. One with states of
// workers is there already, and would lose them.
void MasterSession::Impl::end_if_complete() {
  if (phase_ != Phase::kFinishing || busy()) return;
  // Until an earlier snapshot is written, its states lie where the last ones will.
  if (gathers_at_end() && !jobs_.snapshot_is_under_way()) ask_for_states();
  const bool has_all = states_.is_of(iteration()) && states_.is_over();
  if (!gathers_at_end() || has_all) send_all_away();
  const std::uint64_t first = tally_.first_iteration();
  const bool is_missing = first >= config_.max_iteration && config_.seats == 0;
  ending_->request({iteration(), iteration() > first || is_missing}, jobs_, out_);
  start_due_jobs();
  if (!ending_->is_complete(jobs_)) return;
  states_.break_off(out_);
  send_all_away();
  phase_ = Phase::kFinished;
  out_.add(master_command::Finish{ending_->plan().error});
}

}  // namespace speedo
