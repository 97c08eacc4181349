#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caf/scheduler/test_coordinator.hpp"

#include <speedo/base/limits.hpp>

#include "support/manual_clock.hpp"

#include "actors/compat.hpp"
#include "actors/local_messages.hpp"
#include "train/job/master_work.hpp"
#include "train/job/worker_work.hpp"

namespace speedo::test {

inline constexpr Digest kModel{11, 22};

// An actor system without threads: run() delivers messages until none is left, and time passes only
// when a test says so, for CAF's delayed messages and on `clock` alike.
class QuietSystem {
 public:
  QuietSystem() : system(config_) {}
  void run() { scheduler().run(); }
  // At most kTickInterval, so that an actor that ticks misses none.
  void pass(std::chrono::milliseconds time) {
    clock.advance(time);
    scheduler().advance_time(time);
    run();
  }
  // Lets time pass, tick after tick, until `done`: for an hour of that time at most.
  template <class Done>
  bool pass_until(Done done) {
    const Instant end = clock.now() + std::chrono::hours{1};
    while (!done() && clock.now() < end) pass(kTickInterval);
    return done();
  }
  caf::scheduler::test_coordinator& scheduler() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler());
  }

 private:
  struct Config : caf::actor_system_config {
    Config() {
      set("scheduler.policy", caf::atom("testing"));
      set("logger.verbosity", caf::atom("quiet"));
    }
  };
  Config config_;

 public:
  ManualClock clock;
  caf::actor_system system;
};

// Keeps what an actor orders; the test gives the answers.
class ScriptedMasterWork : public MasterWork {
 public:
  using Scores = std::vector<TestScores>;
  struct MergeOrder {
    master_command::StartMerge job;
    std::function<void(Result<MergeResult>)> done;
  };
  struct SnapshotOrder {
    std::uint64_t iteration;
    std::function<void(Result<void>)> done;
  };

  void merge(master_command::StartMerge job,
             std::function<void(Result<MergeResult>)> done) override {
    merges.push_back({std::move(job), std::move(done)});
  }
  void expect(master_command::StartMerge) override {}
  void enter_stage(std::uint32_t stage, std::string /*state*/,
                   std::function<void(Result<Version>)> done) override {
    stages.emplace_back(stage, std::move(done));
  }
  void test(std::function<void(Result<Scores>)> done) override {
    tests.push_back(std::move(done));
  }
  void snapshot(std::uint64_t iteration, std::function<void(Result<void>)> done) override {
    snapshots.push_back({iteration, std::move(done)});
  }
  void finish_snapshot(const master_command::FinishSnapshot& command) override {
    finished_snapshots.push_back(command);
  }
  void erase_seat(std::uint64_t /*seat*/) override {}
  void stop_tests() override { tests_stopped = true; }
  void watch(Instant /*now*/, std::function<void(Result<void>)> /*seen*/) override {}
  void erase_worker(WorkerId worker) override { erased.push_back(worker); }
  void stop_waiting() override { stopped_waiting = true; }
  const PartTerms* part_terms() const override { return parts ? &*parts : nullptr; }

  std::vector<MergeOrder> merges;
  std::vector<std::pair<std::uint32_t, std::function<void(Result<Version>)>>> stages;
  std::vector<std::function<void(Result<Scores>)>> tests;
  std::vector<SnapshotOrder> snapshots;
  std::vector<master_command::FinishSnapshot> finished_snapshots;
  std::vector<WorkerId> erased;
  bool tests_stopped = false;
  bool stopped_waiting = false;
  std::optional<PartTerms> parts;
};

class ScriptedWorkerWork : public WorkerWork {
 public:
  void prepare(const WelcomeMessage& welcome, std::function<void(Result<Digest>)> done) override {
    prepares.emplace_back(welcome, std::move(done));
  }
  void run(const TrainMessage& order, std::function<void(Result<RunReport>)> done) override {
    runs.emplace_back(order, std::move(done));
  }
  void save_state(const SaveStateMessage& order,
                  std::function<void(Result<void>)> done) override {
    saves.emplace_back(order, std::move(done));
  }
  void look_for_end(std::uint64_t term, std::function<void(bool)> done) override {
    looks.emplace_back(term, std::move(done));
  }
  void cancel() override { cancels += 1; }
  void withdraw() override { withdrawals += 1; }
  std::uint64_t progress() const override { return layers; }

  std::vector<std::pair<WelcomeMessage, std::function<void(Result<Digest>)>>> prepares;
  std::vector<std::pair<TrainMessage, std::function<void(Result<RunReport>)>>> runs;
  std::vector<std::pair<SaveStateMessage, std::function<void(Result<void>)>>> saves;
  std::vector<std::pair<std::uint64_t, std::function<void(bool)>>> looks;
  int cancels = 0, withdrawals = 0;
  std::uint64_t layers = 0;  // what progress() says
};

// The other side of an actor: sends as itself, and takes what it was sent.
class Peer {
 public:
  explicit Peer(QuietSystem& quiet) : quiet_(quiet) { self_.emplace(quiet.system); }

  // The peer's process dies.
  void die() {
    self_.reset();
    quiet_.run();
  }

  template <class Message>
  void tell(const caf::actor& to, const Message& message) {
    (*self_)->send(to, message);
    quiet_.run();
  }

  // The next message of this type that arrived, if any; others stay.
  template <class Message>
  std::optional<Message> take() {
    std::optional<Message> found;
    (*self_)->receive([&](const Message& message) { found = message; },
                      caf::after(std::chrono::milliseconds{0}) >> [] {});
    return found;
  }

  caf::actor handle() { return caf::actor{self_->ptr()}; }

 private:
  QuietSystem& quiet_;
  std::optional<caf::scoped_actor> self_;
};

}  // namespace speedo::test
