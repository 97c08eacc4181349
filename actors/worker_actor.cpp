#include "actors/worker_actor.hpp"

#include <utility>

#include <sys/mman.h>

#include <speedo/base/limits.hpp>

#include "actors/wire.hpp"
#include "base/log.hpp"
#include "train/job/work_events.hpp"

namespace speedo {
namespace {

// After its goodbye a worker stays so long, for the message to leave the process.
constexpr std::chrono::milliseconds kGoodbyeTime{100};

}  // namespace

WorkerActor::WorkerActor(caf::actor_config& config, WorkerConfig session, WorkerWork& work,
                         WorkerActorHooks hooks)
    : NetworkActor(config),
      log_name_(session.name),
      hooks_(std::move(hooks)),
      session_(std::move(session)),
      work_(work) {
  compat::end_on_exceptions(this);
  compat::on_down(this, [this](const caf::actor_addr& address, const std::string& reason) {
    if (!master_ || master_.address() != address) return;
    set_master(nullptr);
    take(worker_event::MasterLost{reason});
  });
}

caf::behavior WorkerActor::make_behavior() {
  set_default_handler(caf::drop);
  send(this, TickMessage{});
  if (hooks_.part != nullptr) {
    hooks_.part->answer_to([self = caf::actor_cast<caf::actor_addr>(this)](PartAnswer answer) {
      const auto actor = caf::actor_cast<caf::actor>(self);
      if (actor) caf::anon_send(actor, PartNotice{std::move(answer)});
    });
  }
  return {
      [this](const WelcomeMessage& message) { take_from_master<worker_event::Welcome>(message); },
      [this](const RefusedMessage& message) { take_from_master<worker_event::Refused>(message); },
      [this](const TrainMessage& message) {
        take_from_master<worker_event::TrainOrdered>(message);
      },
      [this](const SaveStateMessage& message) {
        take_from_master<worker_event::SaveOrdered>(message);
      },
      [this](const StopMessage& message) { take_from_master<worker_event::Stop>(message); },
      [this](const PartOrderMessage& message) { take_order(message); },
      [this](const PartNotice& notice) {
        for (PartAnswerMessage& message : to_messages(notice.answer)) send_to_master(message);
      },
      [this](const WorkerNotice& notice) { take(notice.event); },
      [this](const ConnectNotice& notice) { take_connection(notice.master); },
      [this](const TickMessage&) { tick(); },
  };
}

void WorkerActor::tick() {
  if (ended_at_) {
    if (said_goodbye_ && now() - *ended_at_ < kGoodbyeTime) {
      return compat::send_after(this, kGoodbyeTime, TickMessage{});
    }
    hooks_.on_end(failure_);
    return quit();
  }
  compat::send_after(this, kTickInterval, TickMessage{});
  take(worker_event::Tick{now(), work_.progress()});
  if (const auto reason = hooks_.poll_stop()) take(worker_event::StopRequested{*reason});
}

void WorkerActor::take(const WorkerEvent& event) {
  if (ended_at_) return;
  for (const WorkerCommand& command : session_.on(event)) {
    std::visit([this](const auto& each) { execute(each); }, command);
  }
}

// What an earlier master said no longer counts.
template <class Event, class Message>
void WorkerActor::take_from_master(const Message& message) {
  if (master_ && current_sender() == master_.address()) take(Event{clipped(message)});
}

void WorkerActor::take_order(const PartOrderMessage& message) {
  if (hooks_.part == nullptr || !master_ || current_sender() != master_.address()) return;
  auto order = orders_.take(message);
  if (!order) return take(worker_event::MasterLost{order.error().message});
  if (*order) hooks_.part->take(std::move(**order));
}

void WorkerActor::take_connection(const Result<caf::actor>& master) {
  if (ended_at_) return;
  if (master) {
    set_master(*master);
    monitor(master_);
    return take(worker_event::Connected{});
  }
  const Error& error = master.error();
  worker_event::ConnectFailed failed{error.message};
  // Who turned away whom, or what this side lacks, is said by the error.
  if (!is_transient(error.code)) failed.for_good = error.code;
  take(failed);
}

// While there is a master this process has an open file of that name, which docker/health.sh looks
// for: a worker that has lost its master still has connections to the store.
void WorkerActor::set_master(caf::actor master) {
  master_ = std::move(master);
  connected_ = Descriptor(master_ ? ::memfd_create("speedo-connected", MFD_CLOEXEC) : -1);
}

void WorkerActor::drop_master() {
  orders_ = {};
  if (!master_) return;
  demonitor(master_);
  set_master(nullptr);
}

template <class Message>
void WorkerActor::send_to_master(const Message& message) {
  if (master_) tell(this, master_, message);
}

void WorkerActor::execute(const worker_command::Connect& /*command*/) {
  drop_master();
  hooks_.connect([self = caf::actor{this}](Result<caf::actor> master) {
    caf::anon_send(self, ConnectNotice{std::move(master)});
  });
}

void WorkerActor::execute(const worker_command::SendHello& command) {
  send_to_master(command.message);
}

void WorkerActor::execute(const worker_command::SendReady& command) {
  send_to_master(command.message);
}

void WorkerActor::execute(const worker_command::SendTrained& command) {
  send_to_master(command.message);
}

void WorkerActor::execute(const worker_command::SendLeave& command) {
  send_to_master(command.message);
  said_goodbye_ = true;
}

void WorkerActor::execute(const worker_command::SendStateSaved& command) {
  send_to_master(command.message);
}

void WorkerActor::execute(const worker_command::SendBeat& command) {
  send_to_master(command.message);
}

void WorkerActor::execute(const worker_command::PrepareJob& command) {
  hooks_.bear_silence(std::chrono::milliseconds(command.welcome.silence_ms));
  work_.prepare(command.welcome, [self = caf::actor{this}](Result<Digest> model) {
    caf::anon_send(self, WorkerNotice{event_of_preparation(model)});
  });
}

void WorkerActor::execute(const worker_command::StartRun& command) {
  const RunId run{command.order.run};
  work_.run(command.order, [self = caf::actor{this}, run](Result<RunReport> report) {
    caf::anon_send(self, WorkerNotice{event_of_run(run, report)});
  });
}

void WorkerActor::execute(const worker_command::SaveState& command) {
  const SaveStateMessage order = command.order;
  work_.save_state(order, [self = caf::actor{this}, order](Result<void> saved) {
    caf::anon_send(self, WorkerNotice{event_of_state(order, saved)});
  });
}

void WorkerActor::execute(const worker_command::LookForEnd& command) {
  work_.look_for_end(command.term, [self = caf::actor{this}](bool is_over) {
    caf::anon_send(self, WorkerNotice{worker_event::EndLookedFor{is_over}});
  });
}

void WorkerActor::execute(const worker_command::CancelRun& /*command*/) { work_.withdraw(); }

void WorkerActor::execute(const worker_command::Note& command) {
  if (command.warning) {
    SPEEDO_WARN("{}: {}", log_name_, command.text);
  } else {
    SPEEDO_INFO("{}: {}", log_name_, command.text);
  }
}

void WorkerActor::execute(const worker_command::Exit& command) {
  failure_ = command.error;
  ended_at_ = now();
  work_.cancel();
  send(this, TickMessage{});
}

}  // namespace speedo
