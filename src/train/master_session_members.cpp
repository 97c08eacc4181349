// Who is here: handshake, departures, the start of training.

#include <speedo/base/assert.hpp>

#include "train/master_session_impl.hpp"

namespace speedo {

namespace {

// Faults of the store that all workers share: the next worker would meet them, too. A refusal is
// none: each worker opens the store with credentials of its own.
bool is_store_fault(ErrorCode code) {
  return code == ErrorCode::kFull || code == ErrorCode::kCannotWrite;
}

}  // namespace

void MasterSession::Impl::handle(const master_event::Hello& event) {
  if (!open()) return send_away(event.peer);
  end_earlier_lives(event);
  if (turned_away(event)) return;
  const WorkerId id{progress_.worker_ids++};
  peers_[event.peer] = id;
  Worker& worker = workers_[id];
  worker.peer = event.peer;
  worker.name = clip_text(event.message.name);
  worker.uuid_high = event.message.uuid_high;
  worker.uuid_low = event.message.uuid_low;
  worker.heard = now_;
  out_.emplace_back(master_command::SendWelcome{
      event.peer, {id.value, config_.store.text(), config_.job, config_.model.high,
                   config_.model.low, config_.epoch}});
}

// A second Hello, on the same connection or of the same process on another, is a new life of the
// worker, which has forgotten the first. Nothing is sent to the first: it may arrive at the second.
void MasterSession::Impl::end_earlier_lives(const master_event::Hello& event) {
  const HelloMessage& hello = event.message;
  const bool has_uuid = hello.uuid_high != 0 || hello.uuid_low != 0;
  std::vector<WorkerId> earlier;
  for (const auto& [id, worker] : workers_) {
    const bool same = has_uuid && worker.uuid_high == hello.uuid_high &&
                      worker.uuid_low == hello.uuid_low;
    if (same || worker.peer == event.peer) earlier.push_back(id);
  }
  for (const WorkerId id : earlier) {
    const Worker& worker = workers_.at(id);
    note(false, "worker {} begins a new life", worker.name);
    remove(id, worker.run ? Departure::kFlap : Departure::kExcused);
  }
}

bool MasterSession::Impl::turned_away(const master_event::Hello& event) {
  const std::string name = clip_text(event.message.name);
  if (event.message.protocol != kProtocolVersion) {
    note(true, "refused worker {}: protocol {} instead of {}", name, event.message.protocol,
         kProtocolVersion);
    refuse(event.peer, ErrorCode::kMismatch,
           fmt::format("worker {} speaks protocol {}, this master speaks {}; install the same "
                       "version of SpeeDO on both",
                       name, event.message.protocol, kProtocolVersion));
    return true;
  }
  const std::string host = host_of(name);
  if (const Instant left = flaps_.left(host, now_); left.count() > 0) {
    progress_.flapped += 1;
    refuse(event.peer, ErrorCode::kUnavailable,
           fmt::format("workers of {} came and went without finishing a run; it is kept out for "
                       "{:.1f} s more",
                       host, std::chrono::duration<double>(left).count()));
    return true;
  }
  if (config_.workers_max != 0 && workers_.size() >= config_.workers_max) {
    refuse(event.peer, ErrorCode::kUnavailable,
           fmt::format("this job has its {}, the most it takes (--workers MIN:MAX)",
                       count_workers(config_.workers_max)));
    return true;
  }
  return false;
}

void MasterSession::Impl::handle(const master_event::Ready& event) {
  Worker* worker = find(event.peer, event.message.worker);
  // A worker that waits for its first order repeats its Ready: nothing to do.
  if (worker != nullptr && worker->ready && !worker->ordered) return;
  if (worker == nullptr || worker->ready) return ignore(event.peer, "ready message");
  const WorkerId id{event.message.worker};
  const Digest model{event.message.model_high, event.message.model_low};
  if (model != config_.model) {
    const std::string reason = fmt::format(
        "worker {} has built the model {}, this master's is {}; use the same version of "
        "SpeeDO and the same data shapes on both",
        worker->name, to_string(model), to_string(config_.model));
    note(true, "refused: {}", reason);
    refuse(event.peer, ErrorCode::kMismatch, reason);
    return remove(id, Departure::kExcused);
  }
  worker->ready = true;
  last_failure_.clear();
  progress_.workers_alive += 1;
  progress_.workers_joined += 1;
  note(false, "worker {} joined; {} alive, {} joined so far", worker->name, progress_.workers_alive,
       progress_.workers_joined);
  update_pause();
  if (phase_ == Phase::kGathering) {
    if (progress_.workers_alive >= wanted()) start_training();
  } else if (switching_ == Switching::kNo) {
    worker->known = true;
    tell(Joined{{id}, {worker->name}});
  }
}

// All that are ready start together: a synchronous first round has them all.
void MasterSession::Impl::start_training() {
  if (iteration() >= config_.max_iteration) return;
  phase_ = Phase::kTraining;
  progress_.training = true;
  note(false, "training starts at iteration {} with {}", iteration(),
       count_workers(progress_.workers_alive));
  if (config_.test_at_start && test_interval() != 0) tests_.request(iteration());
  start_due_jobs();
  begin_stage();
}

void MasterSession::Impl::handle(const master_event::Leave& event) {
  const Worker* worker = find(event.peer, event.message.worker);
  if (worker == nullptr) return ignore(event.peer, "leave message");
  const std::string reason = clip_text(event.message.reason);
  note(event.message.code != 0, "worker {} left: {}", worker->name, reason);
  // One that could not reach the store is not to blame.
  const ErrorCode code = error_code_of(event.message.code);
  const bool failed = event.message.code != 0;
  if (failed && !worker->ready) {
    last_failure_ = fmt::format("{} could not work: {}", worker->name,
                                clip_text(event.message.reason));
  }
  remove(WorkerId{event.message.worker},
         failed && is_transient(code) ? Departure::kExcused : Departure::kFlap);
  if (failed && phase_ == Phase::kGathering) {
    note(true, "still waiting for workers: {} of {} are ready", progress_.workers_alive, wanted());
  }
  if (!failed || !is_store_fault(code) || progress_.workers_alive > 0) return;
  begin_end({"the last worker could not go on: " + reason, Error{code, reason}, false,
             progress_.training});
}

void MasterSession::Impl::handle(const master_event::PeerLost& event) {
  const auto known = peers_.find(event.peer);
  if (known == peers_.end() || !open()) return;
  note(true, "worker {} is gone: {}", workers_.at(known->second).name, event.reason);
  remove(known->second, Departure::kFlap);
}

// What the worker reported before stays: it lies in the store, whole.
void MasterSession::Impl::remove(WorkerId id, Departure departure) {
  const auto found = workers_.find(id);
  SPEEDO_ASSERT(found != workers_.end());
  const Worker worker = std::move(found->second);
  workers_.erase(found);
  peers_.erase(worker.peer);
  leases_.give_back(id);
  if (worker.ordered) gone_.insert(id);
  const std::string host = host_of(worker.name);
  if (departure == Departure::kFlap && !worker.finished) {
    if (const auto wait = flaps_.gone(host, now_)) {
      note(true, "workers of {} come and go without finishing a run; it is kept out for {} s", host,
           std::chrono::duration_cast<std::chrono::seconds>(*wait).count());
    }
  }
  if (!worker.ready) return;
  progress_.workers_alive -= 1;
  update_pause();
  if (worker.known && phase_ == Phase::kTraining) tell(Left{id});
}

// The worker of a message, or null if the message is not to be acted on: its sender is not admitted
// (any more), or it speaks for another life, or training is over.
MasterSession::Impl::Worker* MasterSession::Impl::find(PeerId peer, std::uint64_t claimed) {
  const auto known = peers_.find(peer);
  if (!open() || known == peers_.end() || known->second.value != claimed) return nullptr;
  Worker& worker = workers_.at(known->second);
  worker.heard = now_;
  return &worker;
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
