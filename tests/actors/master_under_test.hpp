#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

#include "actors/actor_end.hpp"
#include "actors/master_actor.hpp"

#include "support.hpp"

namespace speedo::test {

// The master actor with its real session and schedule; peers, work and time are the test's.
struct Master {
  explicit Master(const std::string& schedule = "async", MasterConfig config = defaults()) {
    config.stages.front().strategy.name = schedule;
    session.emplace(std::move(config));
    actor = quiet.system.spawn<MasterActor>(MasterActorHooks{
        .poll_stop = [this] { return stop; },
        .poll_snapshot = [] { return false; },
        .on_progress =
            [this](const MasterProgress& progress, const std::vector<TestScores>* scores) {
              if (scores != nullptr) tested.push_back(progress.iteration);
            },
        .on_tested =
            [this](std::uint64_t iteration, const std::vector<TestScores>&) {
              tested_by_work.push_back(iteration);
            },
        .on_end = end.last_word(),
        .clock = &quiet.clock});
    end.watch(actor);
  }
  ~Master() {
    caf::anon_send_exit(actor, caf::exit_reason::kill);
    quiet.run();
  }

  static MasterConfig defaults() {
    MasterConfig config;
    config.max_iteration = 4;
    config.model = kModel;
    config.store = StoreAddress("127.0.0.1:1");
    config.job = "job";
    return config;
  }

  void begin(Instant reachable_until = Instant{0}) {
    caf::anon_send(actor, BeginMessage{&*session, &work, reachable_until});
    quiet.run();
  }
  // What the outside says while the master works.
  void notice(MasterEvent event) {
    caf::anon_send(actor, MasterNotice{std::move(event), {}});
    quiet.run();
  }
  Instant now() const { return quiet.clock.now(); }
  bool ends() {
    return quiet.pass_until([this] { return end.over(); });
  }
  // Answers the only merge that waits.
  void merged(std::uint64_t version) {
    REQUIRE(work.merges.size() == 1);
    const auto order = std::move(work.merges.front());
    work.merges.clear();
    order.done(MergeResult{.version = Version{version}});
    quiet.run();
  }
  void snapshot_done() {
    REQUIRE(work.snapshots.size() == 1);
    const auto order = std::move(work.snapshots.front());
    work.snapshots.clear();
    order.done({});
    quiet.run();
  }

  QuietSystem quiet;
  ScriptedMasterWork work;
  std::optional<MasterSession> session;
  std::optional<std::string> stop;
  std::vector<std::uint64_t> tested;  // the iterations whose scores were reported
  std::vector<std::uint64_t> tested_by_work;  // the same, as the work's thread has told them
  ActorEnd end{"the master"};
  caf::actor actor;
};

// A peer that was admitted and is ready; gives its worker number.
inline std::uint64_t join(Master& master, Peer& peer) {
  peer.tell(master.actor, HelloMessage{.name = "h/1/0", .device = "cpu"});
  const auto welcome = peer.take<WelcomeMessage>();
  REQUIRE(welcome);
  CHECK(welcome->store == "127.0.0.1:1");
  peer.tell(master.actor, ReadyMessage{welcome->worker, kModel.high, kModel.low});
  return welcome->worker;
}

inline TrainMessage take_train(Peer& peer) {
  const auto order = peer.take<TrainMessage>();
  REQUIRE(order);
  return *order;
}

inline TrainedMessage report(std::uint64_t worker, const TrainMessage& order, float loss = 0.5F) {
  return {.worker = worker,
          .run = order.run,
          .loss_bits = std::bit_cast<std::uint32_t>(loss),
          .base_version = order.version,
          .samples = 8};
}

}  // namespace speedo::test
