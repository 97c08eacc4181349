// Runs, and the end of an incarnation.

#include <bit>

#include "train/session/worker_session_impl.hpp"

namespace speedo {

// Run numbers only grow within an incarnation: one not above the last is a duplicate or late. A
// higher one while a run is under way means that the master has given that run up.
void WorkerSession::Impl::handle(const worker_event::TrainOrdered& event) {
  const RunId run{event.message.run};
  if (state_ != State::kReady || (last_ordered_ && run <= *last_ordered_)) return;
  cancel_run();
  run_ = last_ordered_ = run;
  out_.emplace_back(worker_command::StartRun{event.message, *id_});
}

void WorkerSession::Impl::handle(const worker_event::RunDone& event) {
  const RunReport& report = event.report;
  if (run_ != report.run) return;
  run_.reset();
  attempts_ = 0;
  is_quiet_ = false;
  const WeightsCheck check = report.check.value_or(WeightsCheck{{kNoVersion}});
  out_.emplace_back(worker_command::SendTrained{
      {id_->value, report.run.value, std::bit_cast<std::uint32_t>(report.loss),
       report.base.value, report.samples, report.phases, report.traffic, check.version.value,
       check.digest, clip_text(report.fault), report.read_faults}});
}

// Its answer goes to the incarnation that was asked. One that is under way answers a second order
// for the same snapshot as well: put twice, the state could be there again once the master is done
// with it.
void WorkerSession::Impl::handle(const worker_event::SaveOrdered& event) {
  if (state_ != State::kReady || event.message.worker != id_->value) return;
  if (saving_ == event.message.iteration) return;
  saving_ = event.message.iteration;
  out_.emplace_back(worker_command::SaveState{event.message});
}

void WorkerSession::Impl::handle(const worker_event::StateSaved& event) {
  if (!id_ || event.order.worker != id_->value) return;
  if (saving_ == event.order.iteration) saving_.reset();
  StateSavedMessage answer{id_->value, event.order.iteration, 0, {}};
  if (event.error) {
    answer.code = static_cast<std::uint32_t>(event.error->code);
    answer.reason = clip_text(event.error->message);
  }
  out_.emplace_back(worker_command::SendStateSaved{std::move(answer)});
}

// With the store out of reach this incarnation is over, since its contribution may be there or not;
// the next one starts clean. Bad data stay bad.
void WorkerSession::Impl::handle(const worker_event::RunFailed& event) {
  if (run_ != event.run) return;
  run_.reset();
  leave(static_cast<std::uint32_t>(event.error.code), event.error.message);
  if (!is_transient(event.error.code)) return exit(event.error);
  join_again("run " + std::to_string(event.run.value) + ": " + event.error.message);
}

void WorkerSession::Impl::handle(const worker_event::Stop& event) {
  note(false, "the master says stop: {}", event.message.reason);
  if (!id_) take_back();  // else what was reported may still be merged
  exit(std::nullopt);
}

void WorkerSession::Impl::handle(const worker_event::StopRequested& event) {
  leave(0, event.reason);
  exit(std::nullopt);
}

void WorkerSession::Impl::leave(std::uint32_t code, const std::string& reason) {
  if (!id_) return;
  out_.emplace_back(worker_command::SendLeave{{id_->value, code, clip_text(reason)}});
}

void WorkerSession::Impl::cancel_run() {
  if (!run_) return;
  run_.reset();
  out_.emplace_back(worker_command::CancelRun{});
}

// The job is over. What an incarnation that was given up has contributed nobody has merged, and who
// ended the job may have cleaned up before it was there.
void WorkerSession::Impl::take_back() {
  if (term_) out_.emplace_back(worker_command::CancelRun{});
}

void WorkerSession::Impl::end_incarnation() {
  cancel_run();
  id_.reset();
  last_ordered_.reset();
  saving_.reset();
}

void WorkerSession::Impl::exit(std::optional<Error> error) {
  end_incarnation();
  state_ = State::kExited;
  out_.emplace_back(worker_command::Exit{std::move(error)});
}

}  // namespace speedo
