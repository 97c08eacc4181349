// The worker actor with its real session; the master and the work are the test's.
#include "actors/worker_actor.hpp"

#include <bit>
#include <cmath>
#include <thread>

#include "support/catch.hpp"

#include <speedo/base/clock.hpp>
#include <speedo/base/limits.hpp>

#include "support.hpp"

namespace speedo {
namespace {

constexpr Digest kModel{11, 22};

struct Worker {
  Worker() {
    actor = quiet.system.spawn<WorkerActor>(
        WorkerConfig{.name = "h/1/0", .device = "cpu", .master = "h:1"}, work,
        WorkerActorHooks{.connect = [this](auto done) { connects.push_back(std::move(done)); },
                         .poll_stop = [this] { return stop; },
                         .on_end =
                             [this](std::optional<Error> error) {
                               ended = true;
                               failure = std::move(error);
                             }});
    quiet.run();
  }
  ~Worker() {
    caf::anon_send_exit(actor, caf::exit_reason::kill);
    quiet.run();
  }

  // Lets real time pass until `done`, as the session reads the real clock.
  template <class Done>
  bool wait_for(Done done) {
    const Instant start = steady_clock().now();
    while (!done() && steady_clock().now() - start < std::chrono::seconds{10}) {
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
      quiet.pass(kTickInterval);
    }
    return done();
  }

  // Answers the only attempt to connect that waits.
  void connected(const caf::actor& master) {
    REQUIRE(wait_for([this] { return !connects.empty(); }));
    const auto done = std::move(connects.front());
    connects.clear();
    done(master);
    quiet.run();
  }

  void admitted(test::Peer& master, std::uint64_t number = 5) {
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

  test::QuietSystem quiet;
  test::ScriptedWorkerWork work;
  std::vector<std::function<void(Result<caf::actor>)>> connects;
  std::optional<std::string> stop;
  bool ended = false;
  std::optional<Error> failure;
  caf::actor actor;
};

}  // namespace

TEST_CASE("a worker that finds no master tries again until there is one") {
  Worker worker;
  for (int attempt = 0; attempt < 2; ++attempt) {
    REQUIRE(worker.wait_for([&] { return !worker.connects.empty(); }));
    const auto done = std::move(worker.connects.front());
    worker.connects.clear();
    done(Error{ErrorCode::kUnavailable, "nobody listens"});
    worker.quiet.run();
    CHECK_FALSE(worker.ended);
  }
  test::Peer master(worker.quiet);
  worker.admitted(master);
}

TEST_CASE("a master of another version is not asked again") {
  Worker worker;
  REQUIRE(worker.connects.size() == 1);
  worker.connects.front()(Error{ErrorCode::kMismatch, "another version"});
  worker.quiet.run();
  REQUIRE(worker.wait_for([&] { return worker.ended; }));
  REQUIRE(worker.failure);
  CHECK(worker.failure->code == ErrorCode::kMismatch);
}

TEST_CASE("a run is computed elsewhere and reported, its loss as bits") {
  for (const float loss : {0.5F, -0.0F, 1.0e-42F, INFINITY, NAN}) {
    Worker worker;
    test::Peer master(worker.quiet);
    worker.admitted(master);
    master.tell(worker.actor, TrainMessage{.run = 7, .iteration = 3, .version = 2});
    REQUIRE(worker.work.runs.size() == 1);
    CHECK(worker.work.runs.front().first.iteration == 3);
    CHECK_FALSE(master.take<TrainedMessage>());
    worker.work.runs.front().second(
        RunReport{.run = RunId{7}, .loss = loss, .base = Version{2}, .samples = 64});
    worker.quiet.run();
    const auto report = master.take<TrainedMessage>();
    REQUIRE(report);
    CHECK(report->worker == 5);
    CHECK(report->run == 7);
    CHECK(report->base_version == 2);
    CHECK(report->samples == 64);
    CHECK(report->loss_bits == std::bit_cast<std::uint32_t>(loss));
  }
}

TEST_CASE("a worker answers while it computes") {
  Worker worker;
  test::Peer master(worker.quiet);
  worker.admitted(master);
  master.tell(worker.actor, TrainMessage{.run = 1});
  REQUIRE(worker.work.runs.size() == 1);
  master.tell(worker.actor, StopMessage{"over"});
  REQUIRE(worker.wait_for([&] { return worker.ended; }));
  CHECK_FALSE(worker.failure);
  CHECK(worker.work.cancels > 0);
}

TEST_CASE("a worker beats: which run it is at, and how far") {
  Worker worker;
  test::Peer master(worker.quiet);
  worker.admitted(master);
  master.tell(worker.actor, TrainMessage{.run = 7});
  worker.work.layers = 41;
  std::optional<BeatMessage> beat;
  const auto next_beat = [&] {
    while (auto other = master.take<BeatMessage>()) beat = other;
    return beat.has_value();
  };
  const Instant start = steady_clock().now();
  REQUIRE(worker.wait_for(next_beat));
  CHECK(beat->worker == 5);
  CHECK(beat->run == 7);
  CHECK(beat->progress == 41);
  worker.work.layers = 42;
  beat.reset();
  REQUIRE(worker.wait_for([&] { return next_beat() && beat->progress == 42; }));
  CHECK(steady_clock().now() - start < 4 * kBeatInterval);
}

TEST_CASE("a worker whose master dies looks for it again, and joins as a new life") {
  Worker worker;
  {
    test::Peer master(worker.quiet);
    worker.admitted(master, 5);
    master.tell(worker.actor, TrainMessage{.run = 1});
    master.die();
  }
  CHECK(worker.work.cancels > 0);
  worker.work.runs.clear();
  test::Peer next(worker.quiet);
  worker.admitted(next, 9);
  CHECK_FALSE(worker.ended);
}

TEST_CASE("what another than the master says is not obeyed") {
  Worker worker;
  test::Peer master(worker.quiet), stranger(worker.quiet);
  worker.admitted(master);
  stranger.tell(worker.actor, TrainMessage{.run = 1});
  stranger.tell(worker.actor, StopMessage{"go"});
  stranger.tell(worker.actor, RefusedMessage{1, "no"});
  CHECK(worker.work.runs.empty());
  CHECK_FALSE(worker.ended);
}

TEST_CASE("a refused worker ends with the master's reason") {
  Worker worker;
  test::Peer master(worker.quiet);
  worker.connected(master.handle());
  master.tell(worker.actor,
              RefusedMessage{static_cast<std::uint32_t>(ErrorCode::kMismatch), "other model"});
  REQUIRE(worker.wait_for([&] { return worker.ended; }));
  REQUIRE(worker.failure);
  CHECK(worker.failure->code == ErrorCode::kMismatch);
  CHECK(worker.failure->message.find("other model") != std::string::npos);
}

TEST_CASE("a worker that is asked to stop says goodbye") {
  Worker worker;
  test::Peer master(worker.quiet);
  worker.admitted(master);
  worker.stop = "asked to";
  worker.quiet.pass(kTickInterval);
  const auto leave = master.take<LeaveMessage>();
  REQUIRE(leave);
  CHECK(leave->code == 0);
  REQUIRE(worker.wait_for([&] { return worker.ended; }));
  CHECK_FALSE(worker.failure);
}

TEST_CASE("a job that cannot be prepared ends the worker with its error") {
  Worker worker;
  test::Peer master(worker.quiet);
  worker.connected(master.handle());
  master.tell(worker.actor, WelcomeMessage{1, "store", "job", kModel.high, kModel.low});
  REQUIRE(worker.work.prepares.size() == 1);
  worker.work.prepares.front().second(Error{ErrorCode::kData, "train_lmdb: no such folder"});
  worker.quiet.run();
  REQUIRE(worker.wait_for([&] { return worker.ended; }));
  REQUIRE(worker.failure);
  CHECK(worker.failure->code == ErrorCode::kData);
}

}  // namespace speedo
