#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/clock.hpp>

#include "actors/actor_base.hpp"
#include "actors/compat.hpp"
#include "actors/local_messages.hpp"
#include "actors/node.hpp"
#include "train/job/master_work.hpp"
#include "train/job/part_peers.hpp"

namespace speedo {

// What the master actor asks and tells as long as it lives. Called by the actor, but for
// on_tested: must be quick.
struct MasterActorHooks {
  std::function<std::optional<std::string>()> poll_stop;
  std::function<bool()> stop_wants_snapshot = {};  // empty: yes
  std::function<bool()> poll_snapshot;
  std::function<void(const MasterProgress&, const std::vector<TestScores>*)> on_progress;
  // By the thread that has tested, as long as its work lives; may be empty.
  std::function<void(std::uint64_t iteration, const std::vector<TestScores>&)> on_tested = {};
  // How the job stands, every kStatusInterval and at its end; may be empty.
  std::function<void(JobStatus)> on_status = {};
  // What the session notes; empty: the actor logs it.
  std::function<void(bool is_warning, std::string text)> on_note = {};
  // Once, when training is over and the workers are gone: the actor's last act but to quit. Not if
  // something else ends it.
  std::function<void(std::optional<Error>)> on_end;
  const Clock* clock = &steady_clock();  // outlives the actor
};

// The shell around MasterSession: turns messages into events, and commands into messages and work.
// It does nothing before BeginMessage; workers that connect earlier wait in its mailbox.
class MasterActor : public NetworkActor {
 public:
  MasterActor(caf::actor_config& config, MasterActorHooks hooks);
  const char* name() const override { return "master"; }

 protected:
  caf::behavior make_behavior() override;

 private:
  caf::behavior working();
  void take(const MasterEvent& event);
  void take_hello(const HelloMessage& message);
  void take_ready(const ReadyMessage& message);
  std::optional<PeerId> sender();
  PeerId meet(const caf::actor& actor);
  void turn_away(const caf::actor& actor);
  Instant now() const { return hooks_.clock->now(); }
  template <class Event, class Message>
  void take_from_peer(const Message& message);
  void lose(const caf::actor_addr& address, const std::string& reason);
  void tick();
  void end_when_alone();
  bool stays();

  void execute(const master_command::SendWelcome& command);
  void execute(const master_command::SendRefused& command);
  void execute(const master_command::SendTrain& command);
  void execute(const master_command::SendStop& command);
  void execute(const master_command::StartMerge& command);
  void execute(const master_command::ExpectMerge& command);
  void execute(const master_command::EnterStage& command);
  void execute(const master_command::StartTest& command);
  void execute(const master_command::StartSnapshot& command);
  void execute(const master_command::FinishSnapshot& command);
  void execute(const master_command::SendSaveState& command);
  void execute(const master_command::EraseWorker& command);
  void execute(const master_command::EraseSeat& command);
  void execute(const master_command::StopWaitingForStore& command);
  void execute(const master_command::Note& command);
  void execute(const master_command::Finish& command);
  template <class Message>
  void send_to(PeerId peer, const Message& message);
  void report_progress();
  void report_status();
  void answer_status(const StatusRequestMessage& message);
  void tell_status(const caf::actor& asker);
  void report_test(const MasterNotice& notice);

  // Who watches the job, and when it was last told how it stands.
  struct Asker {
    caf::actor actor;
    Instant answered_at;
  };

  const MasterActorHooks hooks_;
  MasterSession* session_ = nullptr;
  MasterWork* work_ = nullptr;
  std::map<PeerId, caf::actor> peers_;  // workers, and mergers of parts
  std::map<caf::actor_addr, PeerId> peer_of_;
  std::uint64_t peers_seen_ = 0;
  PartPeers parts_;
  std::uint64_t iteration_reported_ = 0;
  bool training_reported_ = false;
  Instant reachable_until_{0};
  std::optional<Instant> status_reported_at_;
  std::map<caf::node_id, Asker> askers_;  // of late
  std::optional<Instant> finished_at_;
  bool is_stop_told_ = false;  // to the session, which takes another for somebody's hurry
  std::optional<Error> failure_;
};

}  // namespace speedo
