// Tests, snapshots, the end.

#include <speedo/base/assert.hpp>

#include "train/master_session_impl.hpp"

namespace speedo {

namespace {

std::string diverged_test(std::uint64_t iteration) {
  return fmt::format("training has diverged: the test loss of iteration {} is not finite; lower "
                     "base_lr, set clip_gradients or check the data",
                     iteration);
}

}  // namespace

bool another_follows(const std::optional<Error>& end) {
  if (!end) return false;
  return is_transient(end->code) || end->code == ErrorCode::kFull ||
         end->code == ErrorCode::kSuperseded;
}

// It says whether the last weights are worth a snapshot.
bool MasterSession::Impl::awaits_last_test() const {
  return phase_ == Phase::kFinishing && ending_.test && !tests_.is_done(iteration());
}

void MasterSession::Impl::start_due_jobs() {
  if (not_finite_in_row_ == 0 && std::exchange(snapshot_wanted_, false)) {
    snapshots_.request(iteration());
  }
  if (diverged_at_ && snapshots_.due(*diverged_at_)) {
    snapshots_.cancel();
    note(true, "no snapshot of iteration {} is written: its test loss is not finite",
         *diverged_at_);
  }
  if (const auto at = tests_.start()) out_.emplace_back(master_command::StartTest{*at});
  if (awaits_last_test()) return;
  if (const auto at = snapshots_.start()) out_.emplace_back(master_command::StartSnapshot{*at});
}

void MasterSession::Impl::handle(const master_event::Tested& event) {
  tests_.done();
  progress_.accuracy = event.accuracy;
  progress_.test_loss = event.loss;
  if (!event.diverged) return;
  diverged_at_ = event.iteration;
  if (phase_ == Phase::kFinishing && event.iteration == iteration()) return;
  note(true, "{}", diverged_test(event.iteration));
}

void MasterSession::Impl::handle(const master_event::TestFailed& event) {
  const auto at = tests_.failed();
  if (phase_ == Phase::kFinishing && ending_.test && at == iteration()) {
    ending_.test = false;
    return fail_end(event.error);
  }
  note(true, "the test at iteration {} failed: {}", at.value_or(iteration()), event.error.message);
}

void MasterSession::Impl::handle(const master_event::SnapshotDone& /*event*/) {
  snapshots_.done();
}

void MasterSession::Impl::handle(const master_event::SnapshotFailed& event) {
  const auto at = snapshots_.failed();
  if (phase_ == Phase::kFinishing && at == iteration()) {
    if (event.error.code == ErrorCode::kCannotWrite && !ending_.stopped) {
      return await_room(event.error);
    }
    ending_.snapshot = false;
    return fail_end(event.error);
  }
  note(true, "the snapshot at iteration {} failed: {}", at.value_or(iteration()),
       event.error.message);
}

// What trained so far is in memory, so a snapshot can still be written.
void MasterSession::Impl::fail(const Error& error) {
  if (error.code == ErrorCode::kSuperseded) return end_superseded(error);
  if (!open()) return fail_end(error);
  begin_end({"the master cannot go on: " + error.message, error, false, progress_.training});
}

// Nothing more is written, and the workers look for the new master.
void MasterSession::Impl::end_superseded(const Error& error) {
  const std::string reason = "another master has taken this job over; look for it";
  if (open()) {
    for (const auto& [id, worker] : workers_) {
      refuse(worker.peer, ErrorCode::kUnavailable, reason);
    }
  }
  queue_.clear();
  held_.clear();
  reports_.clear();
  progress_.training = progress_.paused = false;
  phase_ = Phase::kFinished;
  out_.emplace_back(master_command::Finish{error});
}

void MasterSession::Impl::handle(const master_event::StopRequested& event) {
  if (!open()) {  // The last test is what takes long, or a full disk: leave them.
    ending_.test = false;
    ending_.stopped = true;
    tests_.cancel();
    if (snapshot_retry_at_) snapshot_retry_at_ = now_;
    return retry_snapshot();
  }
  const bool snapshot = progress_.training && (event.snapshot || config_.snapshot_at_end);
  begin_end({"stopped: " + event.reason, std::nullopt, false, snapshot, true});
}

void MasterSession::Impl::handle(const master_event::SnapshotRequested& /*event*/) {
  const bool has_news = phase_ == Phase::kTraining && iteration() > first_iteration_;
  const char* remark = "";
  if (!has_news) {
    remark = ", but nothing was trained yet";
  } else if (not_finite_in_row_ > 0) {
    remark = "; it waits for a run with a finite loss";
  }
  note(false, "a snapshot was asked for{}", remark);
  snapshot_wanted_ = has_news;
}

// All that was trained is in memory: it is not given up while somebody can still make room.
void MasterSession::Impl::await_room(const Error& error) {
  note(true,
       "the last snapshot cannot be written: {}; trying again in {} s, until there is room or this "
       "master is told to stop",
       error.message, kSnapshotRetryInterval.count());
  snapshot_retry_at_ = now_ + kSnapshotRetryInterval;
}

void MasterSession::Impl::retry_snapshot() {
  if (!snapshot_retry_at_ || now_ < *snapshot_retry_at_) return;
  snapshot_retry_at_.reset();
  snapshots_.request(iteration());
}

// No new work from here on. A merge under way is waited for; runs under way are let go, and what is
// reported and not merged stays open: it is given out again by a master that goes on from here.
void MasterSession::Impl::begin_end(Ending ending) {
  SPEEDO_ASSERT(open());
  phase_ = Phase::kFinishing;
  progress_.training = progress_.paused = false;
  ending_ = std::move(ending);
  queue_.clear();
  held_.clear();
  reports_.clear();
  snapshot_wanted_ = false;
  if (ending_.error && ending_.error->code == ErrorCode::kNotFinite) snapshots_.cancel();
  if (ending_.snapshot && not_finite_in_row_ > 0) {
    note(true,
         "{} run{} since iteration {} had no finite loss: its snapshot may be of a training that "
         "has diverged",
         not_finite_in_row_, not_finite_in_row_ == 1 ? "" : "s", iteration());
  }
  const bool finish_says_it = ending_.error && ending_.error->message == ending_.reason;
  if (!finish_says_it) note(ending_.error.has_value(), "{}", ending_.reason);
  for (const auto& [id, worker] : workers_) send_away(worker.peer);
  out_.emplace_back(master_command::StopWaitingForStore{});
}

// From training that is over. One that is refused knocks again, until the next master is there.
void MasterSession::Impl::send_away(PeerId peer) {
  if (another_follows(ending_.error)) return refuse(peer, ErrorCode::kUnavailable, ending_.reason);
  out_.emplace_back(master_command::SendStop{peer, {clip_text(ending_.reason)}});
}

// The last test and the last snapshot are of the last iteration, so they are asked for once the
// merge under way is done; asked for again, they change nothing. Weights that are known to have
// diverged are not worth a snapshot.
void MasterSession::Impl::end_if_complete() {
  if (phase_ != Phase::kFinishing || busy()) return;
  if (ending_.test) {
    tests_.request(iteration());
  } else {
    tests_.cancel();
  }
  if (diverged_at_ == iteration() && !std::exchange(ending_.diverged, true)) {
    fail_end({ErrorCode::kNotFinite, diverged_test(iteration())});
  }
  const bool wanted = ending_.snapshot && worth_saving() && !ending_.diverged;
  if (wanted && !snapshot_retry_at_) snapshots_.request(iteration());
  start_due_jobs();
  const bool testing = ending_.test && (tests_.due() || tests_.under_way());
  if (testing || snapshots_.due() || snapshots_.under_way() || snapshot_retry_at_) return;
  phase_ = Phase::kFinished;
  out_.emplace_back(master_command::Finish{ending_.error});
}

// Who was told to stop waits for no store: what was under way there is left out of the snapshot,
// and given out again by a master that goes on from it.
void MasterSession::Impl::fail_end(const Error& error) {
  if (ending_.error || (ending_.stopped && is_transient(error.code))) {
    note(true, "{}", error.message);
  } else {
    ending_.error = error;
  }
}

}  // namespace speedo
