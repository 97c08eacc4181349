// Who is here: handshake, departures, the start of training.

#include <speedo/base/assert.hpp>

#include "train/master_session_impl.hpp"

namespace speedo {

namespace {

// Faults of the store that all workers share: the next worker would meet them, too.
bool is_store_fault(ErrorCode code) {
  return code == ErrorCode::kFull || code == ErrorCode::kRefused ||
         code == ErrorCode::kCannotWrite;
}

}  // namespace

std::uint64_t MasterSession::Impl::wanted() const {
  return phase_ == Phase::kGathering ? config_.workers_min : 1;
}

void MasterSession::Impl::handle(const master_event::Hello& event) {
  if (!open()) {
    out_.emplace_back(master_command::SendStop{event.peer, {clip_text(ending_.reason)}});
    return;
  }
  // A second Hello on one connection is a new life of the worker, which has forgotten the first.
  if (const auto known = peers_.find(event.peer); known != peers_.end()) remove(known->second);
  if (event.message.protocol != kProtocolVersion) {
    refuse(event.peer, ErrorCode::kMismatch,
           fmt::format("worker {} speaks protocol {}, this master speaks {}; install the same "
                       "version of SpeeDO on both",
                       event.message.name, event.message.protocol, kProtocolVersion));
    note(true, "refused worker {}: protocol {} instead of {}", event.message.name,
         event.message.protocol, kProtocolVersion);
    return;
  }
  const WorkerId id{next_worker_++};
  peers_[event.peer] = id;
  Worker& worker = workers_[id];
  worker.peer = event.peer;
  worker.name = clip_text(event.message.name);
  out_.emplace_back(master_command::SendWelcome{
      event.peer, {id.value, config_.store_uri, config_.job, config_.model.high,
                   config_.model.low}});
}

void MasterSession::Impl::handle(const master_event::Ready& event) {
  Worker* worker = find(event.peer, event.message.worker);
  if (worker == nullptr || worker->ready) return ignore(event.peer, "ready message");
  const WorkerId id{event.message.worker};
  const Digest model{event.message.model_high, event.message.model_low};
  if (model != config_.model) {
    const std::string reason = fmt::format(
        "worker {} ({}) has built the model {}, this master's is {}; use the same version of "
        "SpeeDO and the same data shapes on both",
        id.value, worker->name, to_string(model), to_string(config_.model));
    note(true, "refused: {}", reason);
    refuse(event.peer, ErrorCode::kMismatch, reason);
    return remove(id);
  }
  worker->ready = true;
  progress_.workers_alive += 1;
  progress_.workers_joined += 1;
  note(false, "worker {} ({}) joined; {} alive", id.value, worker->name,
       progress_.workers_alive);
  if (phase_ == Phase::kTraining) return tell(Joined{{id}});
  if (progress_.workers_alive >= config_.workers_min) start_training();
}

// All that are ready start together: a synchronous first round has them all.
void MasterSession::Impl::start_training() {
  if (iteration() >= config_.max_iteration) return;
  phase_ = Phase::kTraining;
  progress_.training = true;
  note(false, "training starts at iteration {} with {} workers", iteration(),
       progress_.workers_alive);
  if (config_.test_at_start && config_.test_interval != 0) tests_.request(iteration());
  start_due_jobs();
  Joined joined;
  for (const auto& [id, worker] : workers_) {
    if (worker.ready) joined.workers.push_back(id);
  }
  tell(joined);
}

void MasterSession::Impl::handle(const master_event::Leave& event) {
  const Worker* worker = find(event.peer, event.message.worker);
  if (worker == nullptr) return ignore(event.peer, "leave message");
  note(event.message.code != 0, "worker {} ({}) left: {}", event.message.worker, worker->name,
       event.message.reason);
  remove(WorkerId{event.message.worker});
  const ErrorCode code = error_code_of(event.message.code);
  if (event.message.code == 0 || !is_store_fault(code) || progress_.workers_alive > 0) return;
  begin_end({"the last worker could not go on: " + event.message.reason,
             Error{code, event.message.reason}, false, progress_.training});
}

void MasterSession::Impl::handle(const master_event::PeerLost& event) {
  const auto known = peers_.find(event.peer);
  if (known == peers_.end() || !open()) return;
  note(true, "worker {} ({}) is gone: {}", known->second.value,
       workers_.at(known->second).name, event.reason);
  remove(known->second);
}

// What the worker reported before stays: it lies in the store, whole.
void MasterSession::Impl::remove(WorkerId id) {
  const auto found = workers_.find(id);
  SPEEDO_ASSERT(found != workers_.end());
  const Worker worker = std::move(found->second);
  workers_.erase(found);
  peers_.erase(worker.peer);
  leases_.give_back(id);
  if (!worker.ready) return;
  progress_.workers_alive -= 1;
  if (phase_ != Phase::kTraining) return;
  tell(Left{id});
  if (progress_.workers_alive == 0) note_waiting();
}

void MasterSession::Impl::note_waiting() {
  if (phase_ == Phase::kTraining) {
    note(true, "no worker is left at iteration {}; waiting for new ones", iteration());
  } else {
    note(false, "waiting for workers: {} of {} are ready", progress_.workers_alive, wanted());
  }
}

// The worker of a message, or null if the message is not to be acted on: its sender is not admitted
// (any more), or it speaks for another life, or training is over.
MasterSession::Impl::Worker* MasterSession::Impl::find(PeerId peer, std::uint64_t claimed) {
  const auto known = peers_.find(peer);
  if (!open() || known == peers_.end() || known->second.value != claimed) return nullptr;
  return &workers_.at(known->second);
}

void MasterSession::Impl::refuse(PeerId peer, ErrorCode code, const std::string& reason) {
  out_.emplace_back(master_command::SendRefused{
      peer, {static_cast<std::uint32_t>(code), clip_text(reason)}});
}

// Once training is over, what workers were still at is expected and not worth a line.
void MasterSession::Impl::ignore(PeerId peer, std::string_view what) {
  if (!open()) return;
  progress_.ignored += 1;
  note(false, "ignored a {} of connection {}: duplicate, late, or its sender is not admitted", what,
       peer.value);
}

}  // namespace speedo
