// Tests, snapshots, the end.

#include <speedo/base/assert.hpp>

#include "train/master_session_impl.hpp"

namespace speedo {

void MasterSession::Impl::start_due_jobs() {
  if (const auto at = tests_.start()) out_.emplace_back(master_command::StartTest{*at});
  if (const auto at = snapshots_.start()) out_.emplace_back(master_command::StartSnapshot{*at});
}

void MasterSession::Impl::handle(const master_event::Tested& event) {
  tests_.done();
  progress_.accuracy = event.accuracy;
  progress_.test_loss = event.loss;
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
    ending_.snapshot = false;
    return fail_end(event.error);
  }
  note(true, "the snapshot at iteration {} failed: {}", at.value_or(iteration()),
       event.error.message);
}

// What trained so far is in memory, so a snapshot can still be written.
void MasterSession::Impl::handle(const master_event::StoreLost& event) {
  if (!open()) return;
  begin_end({"the master cannot go on: " + event.error.message, event.error, false,
             progress_.training});
}

void MasterSession::Impl::handle(const master_event::StopRequested& event) {
  if (!open()) {  // The last test is what takes long: leave it.
    ending_.test = false;
    tests_.cancel();
    return;
  }
  begin_end({"stopped: " + event.reason, std::nullopt, false, progress_.training});
}

// No new work from here on. A merge under way is waited for; runs under way are let go.
void MasterSession::Impl::begin_end(Ending ending) {
  SPEEDO_ASSERT(open());
  phase_ = Phase::kFinishing;
  progress_.training = false;
  ending_ = std::move(ending);
  queue_.clear();
  reports_.clear();
  note(ending_.error.has_value(), "{}", ending_.reason);
  for (const auto& [id, worker] : workers_) {
    out_.emplace_back(master_command::SendStop{worker.peer, {clip_text(ending_.reason)}});
  }
}

// The last test and the last snapshot are of the last iteration, so they are asked for once the
// merge under way is done; asked for again, they change nothing.
void MasterSession::Impl::end_if_complete() {
  if (phase_ != Phase::kFinishing || in_flight_) return;
  if (ending_.test) {
    tests_.request(iteration());
  } else {
    tests_.cancel();
  }
  if (ending_.snapshot) snapshots_.request(iteration());
  start_due_jobs();
  const bool testing = ending_.test && (tests_.due() || tests_.under_way());
  if (testing || snapshots_.due() || snapshots_.under_way()) return;
  phase_ = Phase::kFinished;
  out_.emplace_back(master_command::Finish{ending_.error});
}

void MasterSession::Impl::fail_end(const Error& error) {
  if (ending_.error) {
    note(true, "{}", error.message);
  } else {
    ending_.error = error;
  }
}

}  // namespace speedo
