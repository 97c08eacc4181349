#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

#include "actors/actor_end.hpp"
#include "actors/worker_actor.hpp"

#include "support.hpp"

namespace speedo::test {

// The worker actor with its real session; the master, the work and time are the test's.
struct Worker {
  Worker() {
    actor = quiet.system.spawn<WorkerActor>(
        WorkerConfig{.name = "h/1/0", .device = "cpu", .master = "h:1"}, work,
        WorkerActorHooks{.connect = [this](auto done) { connects.push_back(std::move(done)); },
                         .poll_stop = [this] { return stop; },
                         .bear_silence = [this](auto borne) { silence = borne; },
                         .on_end = end.last_word(),
                         .clock = &quiet.clock});
    end.watch(actor);
    quiet.run();
  }
  ~Worker() {
    caf::anon_send_exit(actor, caf::exit_reason::kill);
    quiet.run();
  }

  bool ends() {
    return quiet.pass_until([this] { return end.over(); });
  }

  // Answers the only attempt to connect that waits.
  void connected(const caf::actor& master) {
    REQUIRE(quiet.pass_until([this] { return !connects.empty(); }));
    const auto done = std::move(connects.front());
    connects.clear();
    done(master);
    quiet.run();
  }

  void admitted(Peer& master, std::uint64_t number = 5) {
    connected(master.handle());
    REQUIRE(master.take<HelloMessage>());
    master.tell(actor, WelcomeMessage{number, "store", "job", kModel.high, kModel.low});
    REQUIRE(work.prepares.size() == 1);
    CHECK(work.prepares.front().first.worker == number);
    const auto done = std::move(work.prepares.front().second);
    work.prepares.clear();
    done(kModel);
    quiet.run();
    const auto ready = master.take<ReadyMessage>();
    REQUIRE(ready);
    CHECK(ready->worker == number);
  }

  QuietSystem quiet;
  ScriptedWorkerWork work;
  std::vector<std::function<void(Result<caf::actor>)>> connects;
  std::optional<std::string> stop;
  std::optional<std::chrono::milliseconds> silence;  // that the worker was told to bear
  ActorEnd end{"the worker"};
  caf::actor actor;
};

}  // namespace speedo::test
