// The master's session as others see it.

#include "train/note_text.hpp"
#include "train/session/master_session_impl.hpp"

namespace speedo {
JobStatus MasterSession::status() const { return impl_->status(); }

JobStatus MasterSession::Impl::status() const {
  const Instant now = clock_.now();
  JobStatus status;
  status.progress = progress_;
  const MergeTally::Counts& before = tally_.restored();
  status.earlier = {before.merges,    before.contributions, before.rejected,
                    before.discarded, before.samples,       members_.joined_before()};
  status.job = config_.job;
  status.training = short_name(training_);
  status.schedule = schedule().strategy.name;
  status.stages = stages_.count();
  status.max_iteration = config_.max_iteration;
  status.workers_min = config_.workers_min;
  status.uptime_ms = whole_milliseconds(now);
  status.store_away = store_absence_.is_away();
  status.over = !open();
  figures_.show(status, now);
  for (WorkerStatus& row : status.workers) {
    const Membership::Member* const member = members_.find(row.worker);
    if (member == nullptr) continue;
    row.silent_ms = whole_milliseconds(now - member->heard);
    if (member->ready) {
      const bool trains = runs_.is_busy(row.worker);
      row.state = trains ? WorkerState::kTraining : WorkerState::kWaiting;
    }
  }
  return status;
}

}  // namespace speedo
