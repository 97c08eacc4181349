// A MasterSession and several WorkerSessions, joined by a small world that one seed decides: order
// of delivery, duplicates, lost connections, crashes, late answers, a master that dies and is
// replaced. After some steps the faults stop, and training must reach its end.

#include <deque>
#include <limits>
#include <memory>

#include <speedo/base/random.hpp>
#include <speedo/train/worker_session.hpp>

#include "support/catch.hpp"

#include "master_session_checker.hpp"
#include "master_session_driver.hpp"

namespace speedo {

namespace {

constexpr std::uint64_t kMaxIteration = 25;
#ifdef SPEEDO_SANITIZED
constexpr std::uint64_t kSeeds = 200;
#else
constexpr std::uint64_t kSeeds = 2000;
#endif

// One worker process: its session, its trainer (answers owed) and its connection.
struct Node {
  explicit Node(std::uint64_t number)
      : session({"w" + std::to_string(number), "cpu", "m:1", number, std::chrono::seconds(0)}) {}

  WorkerSession session;
  std::optional<std::uint64_t> peer;
  bool connecting = false;
  int preparing = 0;
  std::optional<RunId> run;             // the trainer is at it
  std::deque<RunId> cancelled;          // their answers may still come
  std::deque<MasterEvent> to_master;
  std::deque<WorkerEvent> to_worker;
  std::optional<std::optional<Error>> exit;
};

class World {
 public:
  World(std::uint64_t seed, const std::string& strategy) : random_(seed), strategy_(strategy) {
    start_master(0);
    for (std::uint64_t i = 0, n = 1 + random_.below(5); i < n; ++i) add_node();
  }

  // The first violation, or nothing.
  std::string run() {
    for (int i = 0; i < 600 && !over(); ++i) step(true);
    while (nodes_.size() < 2) add_node();
    for (int i = 0; i < 60000 && !over(); ++i) step(false);
    if (!violation_.empty()) return violation_;
    if (!over()) return "training does not end";
    if (const auto error = checker_->error(); error && *error != ErrorCode::kNotFinite) {
      return "the master ends with error " + std::to_string(static_cast<int>(*error));
    }
    return {};
  }
  std::uint64_t merges() const { return merges_before_ + checker_->merged_runs(); }

 private:
  bool over() const { return !violation_.empty() || master_->finished(); }
  bool chance(std::uint64_t one_in) { return random_.below(one_in) == 0; }

  void start_master(std::uint64_t iteration) {
    MasterConfig config = config_for(1 + random_.below(2), kMaxIteration);
    config.start_iteration = iteration;
    config.first_run = next_run_;
    config.first_version = {version_};
    config.test_interval = random_.below(4);
    config.snapshot_interval = random_.below(4);
    config.worker_timeout = std::chrono::seconds(20);
    master_ = std::make_unique<MasterSession>(config, MasterDriver::named(strategy_));
    checker_ = std::make_unique<MasterChecker>(config, strategy_ == "sync");
    merge_.reset();
    testing_ = saving_ = false;
  }
  void add_node() {
    nodes_.push_back(std::make_unique<Node>(next_node_++));
    tell(*nodes_.back(), worker_event::Tick{now_});
  }

  void tell_master(const MasterEvent& event) {
    checker_->see(event);
    const MasterCommands commands = master_->on(event);
    checker_->check(commands);
    if (violation_.empty()) violation_ = checker_->violation();
    for (const MasterCommand& command : commands) {
      std::visit([this](const auto& c) { carry_out(c); }, command);
    }
  }
  void send(PeerId peer, WorkerEvent event) {
    for (auto& node : nodes_) {
      if (node->peer == peer.value) node->to_worker.push_back(std::move(event));
    }
  }
  void carry_out(const master_command::SendWelcome& c) {
    send(c.peer, worker_event::Welcome{c.message});
  }
  void carry_out(const master_command::SendRefused& c) {
    send(c.peer, worker_event::Refused{c.message});
  }
  void carry_out(const master_command::SendTrain& c) {
    next_run_ = std::max(next_run_, c.message.run + 1);
    send(c.peer, worker_event::TrainOrdered{c.message});
  }
  void carry_out(const master_command::SendStop& c) { send(c.peer, worker_event::Stop{c.message}); }
  void carry_out(const master_command::StartMerge& c) {
    for (const auto& each : c.contributions) {
      if (!stored_.contains(each.run.value)) violation_ = "merge of what is not in the store";
    }
    merge_ = c;
  }
  void carry_out(const master_command::StartTest&) { testing_ = true; }
  void carry_out(const master_command::StartSnapshot&) { saving_ = true; }
  void carry_out(const master_command::Note&) {}
  void carry_out(const master_command::Finish&) {}

  void tell(Node& node, const WorkerEvent& event) {
    for (const WorkerCommand& command : node.session.on(event)) {
      if (node.exit) violation_ = "a worker's command after Exit";
      std::visit([&](const auto& c) { carry_out(node, c); }, command);
    }
  }
  void carry_out(Node& node, const worker_command::Connect&) {
    drop_connection(node, false);
    node.connecting = true;
  }
  template <class Event, class Command>
  void to_master(Node& node, const Command& c) {
    if (node.peer) node.to_master.push_back(Event{{*node.peer}, c.message});
  }
  void carry_out(Node& node, const worker_command::SendHello& c) {
    to_master<master_event::Hello>(node, c);
  }
  void carry_out(Node& node, const worker_command::SendReady& c) {
    to_master<master_event::Ready>(node, c);
  }
  void carry_out(Node& node, const worker_command::SendTrained& c) {
    to_master<master_event::Trained>(node, c);
  }
  void carry_out(Node& node, const worker_command::SendLeave& c) {
    to_master<master_event::Leave>(node, c);
  }
  void carry_out(Node& node, const worker_command::PrepareJob&) { node.preparing += 1; }
  void carry_out(Node& node, const worker_command::StartRun& c) {
    if (node.run) violation_ = "a worker has two runs";
    node.run = RunId{c.order.run};
  }
  void carry_out(Node& node, const worker_command::CancelRun&) {
    if (!node.run) violation_ = "nothing to cancel";
    if (node.run) node.cancelled.push_back(*node.run);
    node.run.reset();
  }
  void carry_out(Node&, const worker_command::Note&) {}
  void carry_out(Node& node, const worker_command::Exit& c) { node.exit = c.error; }

  // What was sent and has not arrived is lost. The master hears of it, sooner or later.
  void drop_connection(Node& node, bool tell_worker) {
    if (!node.peer) return;
    losses_.push_back(*node.peer);
    node.peer.reset();
    node.to_master.clear();
    node.to_worker.clear();
    if (tell_worker) tell(node, worker_event::MasterLost{"reset"});
  }

  void step(bool faults) {
    if (random_.below(8) == 0) now_ += std::chrono::milliseconds(random_.below(400));
    const std::uint64_t kind = random_.below(12);
    if (kind == 0) return tell_master(master_event::Tick{now_});
    if (kind == 1 && !losses_.empty()) {
      const std::uint64_t peer = losses_.front();
      losses_.pop_front();
      return tell_master(master_event::PeerLost{{peer}, "reset"});
    }
    if (kind == 2) return settle(faults);
    if (kind == 3 && faults && chance(6)) return fault();
    if (nodes_.empty()) return;
    const std::size_t index = random_.below(nodes_.size());
    Node& node = *nodes_[index];
    if (!node.exit) step_node(node, faults);
    if (node.exit && node.to_master.empty()) {
      drop_connection(node, false);
      if (*node.exit) violation_ = "a worker exits with an error: " + (*node.exit)->message;
      nodes_.erase(nodes_.begin() + static_cast<std::ptrdiff_t>(index));
    } else if (node.exit) {
      deliver_to_master(node, faults);
    }
  }

  void step_node(Node& node, bool faults) {
    switch (random_.below(6)) {
      case 0: return tell(node, worker_event::Tick{now_});
      case 1: return deliver_to_master(node, faults);
      case 2: return deliver_to_worker(node, faults);
      case 3: return answer_connect(node, faults);
      case 4:
        if (node.preparing == 0) return;
        node.preparing -= 1;
        return tell(node, worker_event::JobPrepared{{11, 12}});
      default: return answer_run(node, faults);
    }
  }
  void deliver_to_master(Node& node, bool faults) {
    if (node.to_master.empty()) return;
    const MasterEvent event = node.to_master.front();
    if (!faults || !chance(8)) node.to_master.pop_front();   // else it will come once more
    tell_master(event);
  }
  void deliver_to_worker(Node& node, bool faults) {
    if (node.to_worker.empty()) return;
    const WorkerEvent event = node.to_worker.front();
    if (!faults || !chance(8)) node.to_worker.pop_front();
    tell(node, event);
  }
  void answer_connect(Node& node, bool faults) {
    if (!node.connecting) return;
    node.connecting = false;
    if (faults && chance(3)) return tell(node, worker_event::ConnectFailed{"refused"});
    node.peer = next_peer_++;
    tell(node, worker_event::Connected{});
  }
  void answer_run(Node& node, bool faults) {
    if (!node.cancelled.empty() && chance(2)) {
      const RunId run = node.cancelled.front();
      node.cancelled.pop_front();
      if (chance(2)) {
        return tell(node, worker_event::RunFailed{run, {ErrorCode::kUnavailable, "cancelled"}});
      }
      stored_.insert(run.value);
      return tell(node, worker_event::RunDone{{run, 1.0F, {0}, 1, 0, 0}});
    }
    if (!node.run) return;
    const RunId run = *node.run;
    node.run.reset();
    if (faults && chance(20)) {
      return tell(node, worker_event::RunFailed{run, {ErrorCode::kUnavailable, "redis away"}});
    }
    stored_.insert(run.value);
    const bool finite = !faults || !chance(20);
    const float loss = finite ? 1.0F : std::numeric_limits<float>::infinity();
    tell(node, worker_event::RunDone{{run, loss, {0}, 1, 0, 0}});
  }

  // What the master's shell owes: the end of a merge, a test or a snapshot.
  void settle(bool faults) {
    if (merge_ && chance(2)) {
      std::vector<WorkerId> rejected;
      for (const auto& each : merge_->contributions) {
        if (faults && chance(20)) rejected.push_back(each.worker);
      }
      if (rejected.size() < merge_->contributions.size()) version_ += 1;
      const MergeId id = merge_->merge;
      merge_.reset();
      tell_master(master_event::Merged{id, {version_}, rejected});
    } else if (testing_ && chance(2)) {
      testing_ = false;
      tell_master(master_event::Tested{checker_->iteration(), 0.5F, 1.0F});
    } else if (saving_) {
      saving_ = false;
      if (faults && chance(4) && checker_->iteration() < kMaxIteration) {
        return tell_master(master_event::SnapshotFailed{{ErrorCode::kCannotWrite, "full"}});
      }
      tell_master(master_event::SnapshotDone{checker_->iteration()});
    }
  }

  void fault() {
    const std::uint64_t kind = random_.below(8);
    if (kind == 0) return crash_master();
    if (kind <= 2 && nodes_.size() < 7) return add_node();
    if (nodes_.empty()) return;
    const std::size_t index = random_.below(nodes_.size());
    if (kind <= 5) return drop_connection(*nodes_[index], true);
    drop_connection(*nodes_[index], false);                  // kill -9
    nodes_.erase(nodes_.begin() + static_cast<std::ptrdiff_t>(index));
  }
  void crash_master() {
    if (checker_->iteration() >= kMaxIteration) return;
    merges_before_ += checker_->merged_runs();
    start_master(checker_->iteration());
    for (auto& node : nodes_) drop_connection(*node, true);
    losses_.clear();
  }

  Random random_;
  std::string strategy_;
  std::unique_ptr<MasterSession> master_;
  std::unique_ptr<MasterChecker> checker_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::deque<std::uint64_t> losses_;      // that the master has yet to hear of
  std::set<std::uint64_t> stored_;        // runs whose contribution is in the store
  std::optional<master_command::StartMerge> merge_;
  bool testing_ = false, saving_ = false;
  Instant now_{std::chrono::seconds(100)};
  std::uint64_t next_node_ = 0, next_peer_ = 0, next_run_ = 0, version_ = 0, merges_before_ = 0;
  std::string violation_;
};

}  // namespace

TEST_CASE("a cluster of sessions under faults keeps its promises and reaches its end") {
  for (const char* strategy : {"async", "sync"}) {
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      INFO("strategy " << strategy << ", seed " << seed);
      World world(seed, strategy);
      REQUIRE(world.run() == "");
    }
  }
}

TEST_CASE("a cluster of sessions does the same again from the same seed") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    World first(seed, "sync"), second(seed, "sync");
    CHECK(first.run() == second.run());
    CHECK(first.merges() == second.merges());
  }
}

}  // namespace speedo
