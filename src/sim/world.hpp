#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/limits.hpp>
#include <speedo/train/master_session.hpp>
#include <speedo/train/worker_session.hpp>

#include "sim/event_queue.hpp"
#include "sim/network.hpp"
#include "sim/process.hpp"
#include "train/job/master_work.hpp"
#include "train/job/part_peers.hpp"
#include "train/job/worker_work.hpp"
#include "train/parts/part_messages.hpp"

namespace speedo::sim {

class MasterNode;
class WorkerNode;

// Sees all that sessions are told and all that they command, just before and just after. The
// commands have not been carried out yet.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void before(const MasterNode&, const MasterEvent&) {}
  virtual void after(const MasterNode&, const MasterEvent&, const MasterCommands&) {}
  virtual void before(const WorkerNode&, const WorkerEvent&) {}
  virtual void after(const WorkerNode&, const WorkerEvent&, const WorkerCommands&) {}
};

struct WorldTiming {
  Instant master_tick = kTickInterval;
  Instant worker_tick = kBeatInterval;
  Instant silence = kConnectionTimeout;  // after which a connection is given up
};

// Master and worker processes around the real sessions, and the connections between them. What the
// processes work at and what the network does is the caller's (work.hpp). One thread.
class World {
 public:
  World(Network& network, Observer& observer, WorldTiming timing = {})
      : network_(network), observer_(observer), timing_(timing) {}
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  EventQueue& queue() { return queue_; }
  const EventQueue& queue() const { return queue_; }
  const WorldTiming& timing() const { return timing_; }

  // It hears its workers when its session begins, see MasterNode::begin().
  MasterNode& start_master();
  // Workers that connect find this one from now on.
  void give_name(MasterNode& master) { named_master_ = &master; }
  WorkerNode& start_worker(const WorkerConfig& config, WorkerWork& work);

  // The process is gone, with its connections. `silent`: with its machine, so that nobody is told.
  void kill(MasterNode& node, bool silent);
  void kill(WorkerNode& node, bool silent);
  // SIGSTOP. Its peers give the connection up after a time of silence.
  void freeze(MasterNode& node);
  void freeze(WorkerNode& node);
  // Nothing arrived at `to` from `from` for so long: `to` gives the connection up.
  void lose_silent(NodeId from, NodeId to);
  // A reset connection: both sides are told. False: it has none.
  bool break_connections(WorkerNode& node);

  MasterNode* named_master() { return named_master_; }
  const std::vector<std::unique_ptr<MasterNode>>& masters() const { return masters_; }
  const std::vector<std::unique_ptr<WorkerNode>>& workers() const { return workers_; }

 private:
  friend class MasterNode;
  friend class WorkerNode;
  // A connection; each side closes it by itself.
  struct Link {
    PeerId id;
    MasterNode* master;
    WorkerNode* worker;
    bool open_at_master = true, open_at_worker = true;
  };
  using LinkPtr = std::shared_ptr<Link>;

  void connect(WorkerNode& worker);
  void accept(WorkerNode& worker, std::uint64_t attempt, MasterNode& master);
  void to_master(const LinkPtr& link, MasterEvent event);
  void to_worker(PeerId peer, WorkerEvent event);
  // Of a worker that merges a part.
  void to_master(const LinkPtr& link, PartAnswerMessage message);
  void to_worker(PeerId peer, PartOrderMessage message);
  void carry(const LinkPtr& link, bool to_master, std::function<void()> arrive);
  void close_at_master(const LinkPtr& link, const std::string& reason, bool tell_peer);
  void close_at_worker(const LinkPtr& link, const std::string& reason, bool tell_peer);
  void forget_at_master(PeerId peer);
  template <class Node>
  void drop_links_of(const Node& node, bool tell_peer);
  template <class Node>
  void freeze_node(Node& node);

  EventQueue queue_;
  Network& network_;
  Observer& observer_;
  const WorldTiming timing_;
  std::vector<std::unique_ptr<MasterNode>> masters_;
  std::vector<std::unique_ptr<WorkerNode>> workers_;
  MasterNode* named_master_ = nullptr;
  std::map<std::uint64_t, LinkPtr> links_;  // open on a side at least
  std::uint64_t next_node_ = 0, next_peer_ = 0;
};

// The shell around a MasterSession.
class MasterNode {
 public:
  MasterNode(World& world, NodeId id);
  NodeId id() const { return id_; }
  Process& process() { return process_; }
  const Process& process() const { return process_; }

  // The session takes its first Tick, and what arrived meanwhile. Both are used until the session
  // has given its last command.
  void begin(MasterSession& session, MasterWork& work);
  void take(const MasterEvent& event);
  // Not within this call: how answers come back.
  void soon(MasterEvent event);
  // Null before begin(), and once finished.
  const MasterSession* session() const { return finish_ ? nullptr : session_; }
  bool finished() const { return finish_.has_value(); }
  const std::optional<Error>& failure() const { return finish_->error; }
  // Called once, when the session has given its last command.
  std::function<void()> on_finish;

 private:
  friend class World;
  void tick();
  void hear(PeerId peer, const MasterEvent& event);
  void hear(PeerId peer, const PartAnswerMessage& message);
  bool is_of_part(const MasterEvent& event);
  void turn_away(PeerId peer);
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

  World& world_;
  const NodeId id_;
  MasterSession* session_ = nullptr;
  MasterWork* work_ = nullptr;
  std::deque<MasterEvent> early_;  // arrived before begin()
  std::optional<master_command::Finish> finish_;
  PartPeers parts_;
  Process process_;  // last: dies first
};

// The shell around a WorkerSession.
class WorkerNode {
 public:
  WorkerNode(World& world, NodeId id, const WorkerConfig& config, WorkerWork& work);
  NodeId id() const { return id_; }
  Process& process() { return process_; }
  const Process& process() const { return process_; }
  const WorkerConfig& config() const { return config_; }

  void take(const WorkerEvent& event);
  bool finished() const { return exit_.has_value(); }
  const std::optional<Error>& failure() const { return exit_->error; }
  std::function<void()> on_exit;  // as MasterNode::on_finish

  // Whether it merges a part instead of training: by its device, see kPartDevice.
  bool merges_part() const { return merges_part_; }
  std::function<void(PartOrder)> on_order;  // of its master; requires: merges_part()
  // To its master, not within this call.
  void say(const PartAnswer& answer);

 private:
  friend class World;
  void tick();
  void soon(WorkerEvent event);
  void hear(const PartOrderMessage& message);
  template <class Event, class Message>
  void send(const Message& message);
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

  World& world_;
  const NodeId id_;
  const WorkerConfig config_;
  WorkerWork& work_;
  WorkerSession session_;
  const bool merges_part_;
  PartOrderReader orders_;             // of the current connection
  std::shared_ptr<World::Link> link_;  // the current connection
  std::uint64_t attempt_ = 0;          // of connecting; older answers are void
  bool connecting_ = false;
  std::optional<worker_command::Exit> exit_;
  Process process_;
};

}  // namespace speedo::sim
