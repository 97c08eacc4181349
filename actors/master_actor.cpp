#include "actors/master_actor.hpp"

#include <utility>

#include <speedo/base/limits.hpp>

#include "actors/wire.hpp"
#include "base/log.hpp"
#include "train/job/work_events.hpp"
#include "train/status_messages.hpp"

namespace speedo {
namespace {

// A function that sends its argument's event to the actor, from any thread. It keeps the actor
// alive.
template <class Event>
auto notifier(const caf::actor& self) {
  return [self](Event event) { caf::anon_send(self, MasterNotice{std::move(event), {}}); };
}

MasterNotice test_notice(std::uint64_t iteration, Result<std::vector<TestScores>> found) {
  MasterNotice notice{event_of_test(iteration, found), {}};
  if (found) {
    notice.scores = std::make_shared<const std::vector<TestScores>>(std::move(found).value());
  }
  return notice;
}

}  // namespace

MasterActor::MasterActor(caf::actor_config& config, MasterActorHooks hooks)
    : NetworkActor(config),
      hooks_(std::move(hooks)),
      parts_({.welcome = [this](PeerId to, WelcomeMessage message) { send_to(to, message); },
              .refuse =
                  [this](PeerId to, RefusedMessage message) {
                    execute(master_command::SendRefused{to, std::move(message)});
                  },
              .order = [this](PeerId to, PartOrderMessage message) { send_to(to, message); },
              .notice =
                  [self = caf::actor_cast<caf::actor_addr>(this)](PartTold told) {
                    const auto actor = caf::actor_cast<caf::actor>(self);
                    if (actor) caf::anon_send(actor, std::move(told));
                  },
              .warn =
                  [this](std::string text) {
                    execute(master_command::Note{true, std::move(text)});
                  }}) {
  compat::end_on_exceptions(this);
  compat::on_down(this, [this](const caf::actor_addr& address, const std::string& reason) {
    lose(address, reason);
  });
}

caf::behavior MasterActor::make_behavior() {
  set_default_handler(caf::skip);
  return {[this](const BeginMessage& message) {
    session_ = message.session;
    work_ = message.work;
    reachable_until_ = message.reachable_until;
    set_default_handler(caf::drop);
    become(working());
    tick();
  }};
}

caf::behavior MasterActor::working() {
  return {
      [this](const HelloMessage& message) { take_hello(message); },
      [this](const ReadyMessage& message) { take_ready(message); },
      [this](const PartAnswerMessage& message) {
        if (const auto peer = sender()) parts_.take(*peer, clipped(message));
      },
      [this](const PartTold& told) { parts_.send(told); },
      [this](const TrainedMessage& message) { take_from_peer<master_event::Trained>(message); },
      [this](const StateSavedMessage& message) {
        take_from_peer<master_event::StateSaved>(message);
      },
      [this](const LeaveMessage& message) { take_from_peer<master_event::Leave>(message); },
      [this](const BeatMessage& message) { take_from_peer<master_event::Beat>(message); },
      [this](const StatusRequestMessage& message) { answer_status(message); },
      [this](const MasterNotice& notice) {
        take(notice.event);
        report_test(notice);
      },
      [this](const TickMessage&) { tick(); },
  };
}

void MasterActor::tick() {
  compat::send_after(this, kTickInterval, TickMessage{});
  std::erase_if(askers_, [&](const auto& each) {
    return now() - each.second.answered_at >= kAnswerTimeout;
  });
  if (finished_at_) return end_when_alone();
  work_->watch(now(), [notify = notifier<MasterEvent>(caf::actor{this})](Result<void> seen) {
    notify(event_of_watch(seen));
  });
  const auto reason = hooks_.poll_stop();
  if (reason && !std::exchange(is_stop_told_, true)) {
    work_->stop_tests();
    const bool snapshot = !hooks_.stop_wants_snapshot || hooks_.stop_wants_snapshot();
    take(master_event::StopRequested{*reason, snapshot});
  }
  if (hooks_.poll_snapshot()) take(master_event::SnapshotRequested{});
  take(master_event::Tick{now()});
  if (!session_ || session_->finished()) return;
  report_progress();
  if (!status_reported_at_ || now() - *status_reported_at_ >= kStatusInterval) report_status();
}

void MasterActor::report_status() {
  if (!hooks_.on_status) return;
  status_reported_at_ = now();
  hooks_.on_status(session_->status());
}

// Whoever asks is not a peer: of its process, whatever number of askers it has, is remembered when
// it was answered.
void MasterActor::answer_status(const StatusRequestMessage& message) {
  const auto asker = caf::actor_cast<caf::actor>(current_sender());
  if (!asker || !session_ || message.protocol != kProtocolVersion) return;
  const auto [last, is_first] = askers_.try_emplace(asker.node(), Asker{asker, now()});
  if (!is_first && now() - last->second.answered_at < kStatusPause) return;
  last->second = {asker, now()};
  tell_status(asker);
}

void MasterActor::tell_status(const caf::actor& asker) {
  const StatusMessages answer = to_messages(session_->status());
  tell(this, asker, answer.job);
  for (const WorkerStatusMessage& row : answer.workers) tell(this, asker, row);
}

void MasterActor::take(const MasterEvent& event) {
  if (finished_at_) return;
  for (const MasterCommand& command : session_->on(event)) {
    std::visit([this](const auto& each) { execute(each); }, command);
  }
  const MasterProgress& progress = session_->progress();
  const bool begins = progress.training && !training_reported_;
  if (begins || progress.iteration != iteration_reported_) report_progress();
}

void MasterActor::take_ready(const ReadyMessage& message) {
  const auto from = sender();
  if (!from || !parts_.has(*from)) return take_from_peer<master_event::Ready>(message);
  if (work_ && work_->part_terms() != nullptr) parts_.take(*from, message, *work_->part_terms());
}

// Of those that have said hello.
std::optional<PeerId> MasterActor::sender() {
  if (!current_sender()) return std::nullopt;
  const auto found = peer_of_.find(caf::actor_cast<caf::actor_addr>(current_sender()));
  return found == peer_of_.end() ? std::nullopt : std::optional(found->second);
}

// A peer is known by its actor's address, which lasts as long as its process. It trains or merges a
// shard, not both: a hello in the other capacity ends the earlier one.
void MasterActor::take_hello(const HelloMessage& message) {
  const auto actor = caf::actor_cast<caf::actor>(current_sender());
  if (!actor) return;
  if (PartPeers::is_part(message)) {
    if (finished_at_) return turn_away(actor);
    const auto before = sender();
    if (before && !parts_.has(*before)) {
      take(master_event::PeerLost{*before, "it would merge a shard now"});
    }
    return parts_.greet(meet(actor), message, work_->part_terms());
  }
  const PeerId peer = meet(actor);
  if (finished_at_) return turn_away(actor);
  parts_.lose(peer, "it would train now");
  take(master_event::Hello{peer, clipped(message)});
}

PeerId MasterActor::meet(const caf::actor& actor) {
  const auto [entry, is_new] = peer_of_.try_emplace(actor.address(), PeerId{peers_seen_});
  if (is_new) {
    peers_seen_ += 1;
    peers_.emplace(entry->second, actor);
    monitor(actor);
  }
  return entry->second;
}

// Only a master that has the job knows that it is over.
void MasterActor::turn_away(const caf::actor& actor) {
  if (!another_follows(failure_)) return tell(this, actor, StopMessage{"the job is over"});
  const bool superseded = failure_->code == ErrorCode::kSuperseded;
  tell(this, actor,
       RefusedMessage{static_cast<std::uint32_t>(ErrorCode::kUnavailable),
                      superseded ? "another master has the job now"
                                 : "this master has ended; another may go on"});
}

template <class Event, class Message>
void MasterActor::take_from_peer(const Message& message) {
  const auto peer = sender();
  if (peer && !parts_.has(*peer)) take(Event{*peer, clipped(message)});
}

void MasterActor::lose(const caf::actor_addr& address, const std::string& reason) {
  const auto found = peer_of_.find(address);
  if (found == peer_of_.end()) return end_when_alone();
  const PeerId peer = found->second;
  peer_of_.erase(found);
  peers_.erase(peer);
  const bool was_part = parts_.has(peer);
  // At the end they were sent away, and nothing is merged any more.
  if (was_part && !finished_at_) parts_.lose(peer, reason);
  if (session_ && !was_part) take(master_event::PeerLost{peer, reason});
  end_when_alone();
}

// The last messages to the workers must leave the process before it ends; their going shows that
// they have arrived.
void MasterActor::end_when_alone() {
  if (!finished_at_ || !session_) return;
  if (stays()) return;
  session_ = nullptr;
  work_ = nullptr;
  hooks_.on_end(failure_);
  quit();
}

bool MasterActor::stays() {
  if (!peers_.empty() && now() - *finished_at_ < kFarewellTimeout) return true;
  return !failure_ && now() < reachable_until_ && !hooks_.poll_stop();
}

template <class Message>
void MasterActor::send_to(PeerId peer, const Message& message) {
  const auto found = peers_.find(peer);
  if (found != peers_.end()) tell(this, found->second, message);
}

void MasterActor::execute(const master_command::SendWelcome& command) {
  send_to(command.peer, command.message);
}

void MasterActor::execute(const master_command::SendRefused& command) {
  const auto found = peers_.find(command.peer);
  if (found == peers_.end()) return;
  const caf::actor peer = found->second;
  tell(this, peer, command.message);
  demonitor(peer);
  peer_of_.erase(peer.address());
  peers_.erase(found);
}

void MasterActor::execute(const master_command::SendTrain& command) {
  send_to(command.peer, command.message);
}

void MasterActor::execute(const master_command::SendStop& command) {
  send_to(command.peer, command.message);
}

void MasterActor::execute(const master_command::SendSaveState& command) {
  send_to(command.peer, command.message);
}

void MasterActor::execute(const master_command::StartMerge& command) {
  const MergeId merge = command.merge;
  work_->merge(command, [notify = notifier<MasterEvent>(caf::actor{this}),
                         merge](Result<MergeResult> result) {
    notify(event_of_merge(merge, result));
  });
}

void MasterActor::execute(const master_command::ExpectMerge& command) {
  work_->expect(command.merge);
}

void MasterActor::execute(const master_command::EnterStage& command) {
  work_->enter_stage(command.stage, command.state,
                     [notify = notifier<MasterEvent>(caf::actor{this})](Result<Version> version) {
                       notify(event_of_stage(version));
                     });
}

void MasterActor::execute(const master_command::StartTest& command) {
  const std::uint64_t iteration = command.iteration;
  work_->test([self = caf::actor{this}, on_tested = hooks_.on_tested,
               iteration](Result<std::vector<TestScores>> scores) {
    if (scores && on_tested) on_tested(iteration, *scores);
    caf::anon_send(self, test_notice(iteration, std::move(scores)));
  });
}

void MasterActor::execute(const master_command::StartSnapshot& command) {
  const std::uint64_t iteration = command.iteration;
  work_->snapshot(iteration, [notify = notifier<MasterEvent>(caf::actor{this}),
                              iteration](Result<void> result) {
    notify(event_of_snapshot(iteration, result));
  });
}

void MasterActor::execute(const master_command::FinishSnapshot& command) {
  work_->finish_snapshot(command);
}

void MasterActor::execute(const master_command::EraseWorker& command) {
  work_->erase_worker(command.worker);
}

void MasterActor::execute(const master_command::EraseSeat& command) {
  work_->erase_seat(command.seat);
}

void MasterActor::execute(const master_command::StopWaitingForStore& /*command*/) {
  work_->stop_waiting();
}

void MasterActor::execute(const master_command::Note& command) {
  if (hooks_.on_note) return hooks_.on_note(command.warning, command.text);
  if (command.warning) {
    SPEEDO_WARN("{}", command.text);
  } else {
    SPEEDO_INFO("{}", command.text);
  }
}

void MasterActor::execute(const master_command::Finish& command) {
  failure_ = command.error;
  finished_at_ = now();
  parts_.for_each([this](PeerId peer) {
    const auto found = peers_.find(peer);
    if (found != peers_.end()) turn_away(found->second);
  });
  report_progress();
  report_status();
  // Their next question may find nobody.
  if (!another_follows(failure_)) {
    for (const auto& [node, asker] : askers_) tell_status(asker.actor);
  }
  // Not at once: the events of this batch are still being handled.
  compat::send_after(this, std::chrono::milliseconds{0}, TickMessage{});
}

void MasterActor::report_progress() {
  iteration_reported_ = session_->progress().iteration;
  training_reported_ = session_->progress().training;
  hooks_.on_progress(session_->progress(), nullptr);
}

// Its iteration is the tested one; training may have gone on.
void MasterActor::report_test(const MasterNotice& notice) {
  const auto* tested = std::get_if<master_event::Tested>(&notice.event);
  if (tested == nullptr || !notice.scores || !session_) return;
  MasterProgress progress = session_->progress();
  progress.iteration = tested->iteration;
  hooks_.on_progress(progress, notice.scores.get());
}

}  // namespace speedo
