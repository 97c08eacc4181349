#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <speedo/base/clock.hpp>

#include "actors/actor_base.hpp"
#include "actors/compat.hpp"
#include "actors/local_messages.hpp"
#include "actors/node.hpp"
#include "base/descriptor.hpp"
#include "train/job/job_part.hpp"
#include "train/job/worker_work.hpp"
#include "train/parts/part_messages.hpp"

namespace speedo {

// What the worker actor needs as long as it lives.
struct WorkerActorHooks {
  // Starts an attempt to reach the master; `done` may be called on any thread.
  std::function<void(std::function<void(Result<caf::actor>)> done)> connect;
  std::function<std::optional<std::string>()> poll_stop;
  // The master says how long it may be silent before the connection is given up; 0: for ever.
  std::function<void(std::chrono::milliseconds silence)> bear_silence;
  // Once, when it is over: the actor's last act but to quit. Not if something else ends it.
  std::function<void(std::optional<Error>)> on_end;
  JobPart* part = nullptr;  // the work, where it merges a part instead of training
  const Clock* clock = &steady_clock();  // outlives the actor
};

// The shell around WorkerSession. Computing happens elsewhere, so it always answers.
class WorkerActor : public NetworkActor {
 public:
  // `work` outlives the actor's use of it.
  WorkerActor(caf::actor_config& config, WorkerConfig session, WorkerWork& work,
              WorkerActorHooks hooks);
  const char* name() const override { return "worker"; }

 protected:
  caf::behavior make_behavior() override;

 private:
  template <class Event, class Message>
  void take_from_master(const Message& message);
  void take(const WorkerEvent& event);
  void take_order(const PartOrderMessage& message);
  void take_connection(const Result<caf::actor>& master);
  void set_master(caf::actor master);
  void drop_master();
  Instant now() const { return hooks_.clock->now(); }
  void tick();

  void execute(const worker_command::Connect& command);
  void execute(const worker_command::SendHello& command);
  void execute(const worker_command::SendReady& command);
  void execute(const worker_command::SendTrained& command);
  void execute(const worker_command::SendLeave& command);
  void execute(const worker_command::SendBeat& command);
  void execute(const worker_command::PrepareJob& command);
  void execute(const worker_command::StartRun& command);
  void execute(const worker_command::SendStateSaved& command);
  void execute(const worker_command::SaveState& command);
  void execute(const worker_command::LookForEnd& command);
  void execute(const worker_command::CancelRun& command);
  void execute(const worker_command::Note& command);
  void execute(const worker_command::Exit& command);
  template <class Message>
  void send_to_master(const Message& message);

  const std::string log_name_;
  const WorkerActorHooks hooks_;
  WorkerSession session_;
  WorkerWork& work_;
  PartOrderReader orders_;
  caf::actor master_;  // null while there is no connection
  Descriptor connected_{-1};  // none while there is none: a sign for others, see set_master()
  std::optional<Instant> ended_at_;
  bool said_goodbye_ = false;
  std::optional<Error> failure_;
};

}  // namespace speedo
