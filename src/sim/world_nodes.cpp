// The shells: an event in, the session's commands carried out, in order.

#include <utility>

#include <speedo/base/assert.hpp>

#include "sim/world.hpp"
#include "train/job/work_events.hpp"

namespace speedo::sim {
namespace {

// A worker that has said its last word stays for a moment, so that it leaves the process.
constexpr Instant kGoodbyeTime = std::chrono::milliseconds(100);

}  // namespace

MasterNode::MasterNode(World& world, NodeId id)
    : world_(world),
      id_(id),
      parts_({.welcome = [this](PeerId to, WelcomeMessage message) {
                world_.to_worker(to, worker_event::Welcome{std::move(message)});
              },
              .refuse = [this](PeerId to, RefusedMessage message) {
                execute(master_command::SendRefused{to, std::move(message)});
              },
              .order = [this](PeerId to, PartOrderMessage message) {
                world_.to_worker(to, std::move(message));
              },
              .notice = [this](PartTold told) {
                process_.soon([this, told = std::move(told)] { parts_.send(told); });
              },
              .warn = [this](std::string text) {
                execute(master_command::Note{true, std::move(text)});
              }}),
      process_(world.queue_) {}

void MasterNode::begin(MasterSession& session, MasterWork& work) {
  SPEEDO_ASSERT(session_ == nullptr);
  session_ = &session;
  work_ = &work;
  tick();
  for (; !early_.empty(); early_.pop_front()) take(early_.front());
}

void MasterNode::tick() {
  if (finish_) return;
  process_.after(world_.timing_.master_tick, [this] { tick(); });
  work_->watch(process_.now(), [this](const Result<void>& seen) { soon(event_of_watch(seen)); });
  take(master_event::Tick{process_.now()});
}

void MasterNode::soon(MasterEvent event) {
  process_.soon([this, event = std::move(event)] { take(event); });
}

void MasterNode::take(const MasterEvent& event) {
  if (finish_) return;
  if (session_ == nullptr) return early_.push_back(event);
  if (is_of_part(event)) return;
  world_.observer_.before(*this, event);
  const MasterCommands commands = session_->on(event);
  world_.observer_.after(*this, event, commands);
  for (const MasterCommand& command : commands) {
    std::visit([this](const auto& each) { execute(each); }, command);
  }
  if (finish_ && on_finish) on_finish();
}

void MasterNode::hear(PeerId peer, const MasterEvent& event) {
  if (!session_) return early_.push_back(event);
  if (!finish_) return take(event);
  if (std::holds_alternative<master_event::Hello>(event)) return turn_away(peer);
  is_of_part(event);
}

void MasterNode::hear(PeerId peer, const PartAnswerMessage& message) {
  if (session_ != nullptr) parts_.take(peer, message);
}

// What the session of workers does not hear.
bool MasterNode::is_of_part(const MasterEvent& event) {
  if (const auto* const hello = std::get_if<master_event::Hello>(&event)) {
    if (!PartPeers::is_part(hello->message)) return false;
    parts_.greet(hello->peer, hello->message, work_->part_terms());
    return true;
  }
  if (const auto* const ready = std::get_if<master_event::Ready>(&event)) {
    if (!parts_.has(ready->peer)) return false;
    parts_.take(ready->peer, ready->message, *work_->part_terms());
    return true;
  }
  if (const auto* const lost = std::get_if<master_event::PeerLost>(&event)) {
    return parts_.lose(lost->peer, lost->reason);
  }
  const auto* const beat = std::get_if<master_event::Beat>(&event);
  const auto* const leave = std::get_if<master_event::Leave>(&event);
  return (beat != nullptr && parts_.has(beat->peer)) ||
         (leave != nullptr && parts_.has(leave->peer));
}

void MasterNode::turn_away(PeerId peer) {
  if (!another_follows(finish_->error)) {
    return world_.to_worker(peer, worker_event::Stop{StopMessage{"the job is over"}});
  }
  world_.to_worker(peer, worker_event::Refused{RefusedMessage{
                             static_cast<std::uint32_t>(ErrorCode::kUnavailable), "it ended"}});
  world_.forget_at_master(peer);
}

void MasterNode::execute(const master_command::SendWelcome& command) {
  world_.to_worker(command.peer, worker_event::Welcome{command.message});
}

void MasterNode::execute(const master_command::SendRefused& command) {
  world_.to_worker(command.peer, worker_event::Refused{command.message});
  world_.forget_at_master(command.peer);
}

void MasterNode::execute(const master_command::SendTrain& command) {
  world_.to_worker(command.peer, worker_event::TrainOrdered{command.message});
}

void MasterNode::execute(const master_command::SendStop& command) {
  world_.to_worker(command.peer, worker_event::Stop{command.message});
}

void MasterNode::execute(const master_command::SendSaveState& command) {
  world_.to_worker(command.peer, worker_event::SaveOrdered{command.message});
}

void MasterNode::execute(const master_command::StartMerge& command) {
  work_->merge(command, [this, merge = command.merge](const Result<MergeResult>& result) {
    soon(event_of_merge(merge, result));
  });
}

void MasterNode::execute(const master_command::ExpectMerge& command) {
  work_->expect(command.merge);
}

void MasterNode::execute(const master_command::EnterStage& command) {
  work_->enter_stage(command.stage, command.state, [this](const Result<Version>& version) {
    soon(event_of_stage(version));
  });
}

void MasterNode::execute(const master_command::StartTest& command) {
  const std::uint64_t iteration = command.iteration;
  work_->test([this, iteration](const Result<std::vector<TestScores>>& scores) {
    soon(event_of_test(iteration, scores));
  });
}

void MasterNode::execute(const master_command::StartSnapshot& command) {
  const std::uint64_t iteration = command.iteration;
  work_->snapshot(iteration, [this, iteration](const Result<void>& written) {
    soon(event_of_snapshot(iteration, written));
  });
}

void MasterNode::execute(const master_command::FinishSnapshot& command) {
  work_->finish_snapshot(command);
}

void MasterNode::execute(const master_command::EraseWorker& command) {
  work_->erase_worker(command.worker);
}

void MasterNode::execute(const master_command::EraseSeat& command) {
  work_->erase_seat(command.seat);
}

void MasterNode::execute(const master_command::StopWaitingForStore& /*command*/) {
  work_->stop_waiting();
}

void MasterNode::execute(const master_command::Note& /*command*/) {}

void MasterNode::execute(const master_command::Finish& command) {
  finish_ = command;
  parts_.for_each([this](PeerId peer) { turn_away(peer); });
}

WorkerNode::WorkerNode(World& world, NodeId id, const WorkerConfig& config, WorkerWork& work)
    : world_(world),
      id_(id),
      config_(config),
      work_(work),
      session_(config),
      merges_part_(config.device.starts_with(kPartDevice)),
      process_(world.queue_) {}

void WorkerNode::soon(WorkerEvent event) {
  process_.soon([this, event = std::move(event)] { take(event); });
}

void WorkerNode::say(const PartAnswer& answer) {
  process_.soon([this, messages = to_messages(answer)] {
    for (const PartAnswerMessage& each : messages) world_.to_master(link_, each);
  });
}

void WorkerNode::hear(const PartOrderMessage& message) {
  auto order = orders_.take(message);
  SPEEDO_ASSERT(order.has_value());
  if (*order && !exit_) on_order(std::move(**order));
}

void WorkerNode::tick() {
  if (exit_) return;
  process_.after(world_.timing_.worker_tick, [this] { tick(); });
  take(worker_event::Tick{process_.now(), work_.progress()});
}

void WorkerNode::take(const WorkerEvent& event) {
  if (exit_) return;
  world_.observer_.before(*this, event);
  const WorkerCommands commands = session_.on(event);
  world_.observer_.after(*this, event, commands);
  for (const WorkerCommand& command : commands) {
    std::visit([this](const auto& each) { execute(each); }, command);
  }
}

template <class Event, class Message>
void WorkerNode::send(const Message& message) {
  if (link_) world_.to_master(link_, Event{link_->id, message});
}

void WorkerNode::execute(const worker_command::Connect& /*command*/) { world_.connect(*this); }

void WorkerNode::execute(const worker_command::SendHello& command) {
  send<master_event::Hello>(command.message);
}

void WorkerNode::execute(const worker_command::SendReady& command) {
  send<master_event::Ready>(command.message);
}

void WorkerNode::execute(const worker_command::SendTrained& command) {
  send<master_event::Trained>(command.message);
}

void WorkerNode::execute(const worker_command::SendLeave& command) {
  send<master_event::Leave>(command.message);
}

void WorkerNode::execute(const worker_command::SendStateSaved& command) {
  send<master_event::StateSaved>(command.message);
}

void WorkerNode::execute(const worker_command::SendBeat& command) {
  send<master_event::Beat>(command.message);
}

void WorkerNode::execute(const worker_command::PrepareJob& command) {
  work_.prepare(command.welcome, [this](const Result<Digest>& model) {
    soon(event_of_preparation(model));
  });
}

void WorkerNode::execute(const worker_command::StartRun& command) {
  const RunId run{command.order.run};
  work_.run(command.order, [this, run](const Result<RunReport>& report) {
    soon(event_of_run(run, report));
  });
}

void WorkerNode::execute(const worker_command::SaveState& command) {
  const SaveStateMessage order = command.order;
  work_.save_state(order, [this, order](const Result<void>& saved) {
    soon(event_of_state(order, saved));
  });
}

void WorkerNode::execute(const worker_command::LookForEnd& command) {
  work_.look_for_end(command.term,
                     [this](bool is_over) { soon(worker_event::EndLookedFor{is_over}); });
}

void WorkerNode::execute(const worker_command::CancelRun& /*command*/) { work_.withdraw(); }

void WorkerNode::execute(const worker_command::Note& /*command*/) {}

void WorkerNode::execute(const worker_command::Exit& command) {
  exit_ = command;
  work_.cancel();
  process_.after(kGoodbyeTime, [this] {
    world_.kill(*this, false);
    if (on_exit) on_exit();
  });
}

}  // namespace speedo::sim
