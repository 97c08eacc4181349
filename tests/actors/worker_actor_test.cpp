// What the worker actor makes of messages, of its session's commands and of time.
#include "actors/worker_actor.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <thread>

#include "support/catch.hpp"

#include <speedo/base/limits.hpp>

#include "actors/system.hpp"

#include "worker_under_test.hpp"

namespace speedo {
namespace {

using test::kModel;
using test::Worker;

// Files that show others, docker/health.sh for one, that a worker of this process has a master.
int signs_of_masters() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<int>(std::count_if(begin(all), end(all), [](const auto& each) {
    std::error_code code;
    const auto target = std::filesystem::read_symlink(each.path(), code);
    return target.string().starts_with("/memfd:speedo-connected");
  }));
}

}  // namespace

TEST_CASE("a worker that finds no master tries again until there is one") {
  Worker worker;
  for (int attempt = 0; attempt < 2; ++attempt) {
    REQUIRE(worker.quiet.pass_until([&] { return !worker.connects.empty(); }));
    const auto done = std::move(worker.connects.front());
    worker.connects.clear();
    done(Error{ErrorCode::kUnavailable, "nobody listens"});
    worker.quiet.run();
    CHECK_FALSE(worker.end.over());
  }
  test::Peer master(worker.quiet);
  worker.admitted(master);
}

TEST_CASE("a master of another version is not asked again") {
  Worker worker;
  REQUIRE(worker.connects.size() == 1);
  worker.connects.front()(Error{ErrorCode::kMismatch, "another version"});
  worker.quiet.run();
  REQUIRE(worker.ends());
  const auto failure = worker.end.wait();
  REQUIRE(failure);
  CHECK(failure->code == ErrorCode::kMismatch);
  // The master may never have heard of this worker, which may be the one that refuses.
  CHECK(failure->message == "another version");
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
  REQUIRE(worker.ends());
  CHECK_FALSE(worker.end.wait());
  CHECK(worker.work.withdrawals == 1);
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
  const Instant start = worker.quiet.clock.now();
  REQUIRE(worker.quiet.pass_until(next_beat));
  CHECK(beat->worker == 5);
  CHECK(beat->run == 7);
  CHECK(beat->progress == 41);
  worker.work.layers = 42;
  beat.reset();
  REQUIRE(worker.quiet.pass_until([&] { return next_beat() && beat->progress == 42; }));
  CHECK(worker.quiet.clock.now() - start <= 2 * (kBeatInterval + kTickInterval));
}

TEST_CASE("a worker whose master dies looks for it again, and joins as a new incarnation") {
  Worker worker;
  {
    test::Peer master(worker.quiet);
    worker.admitted(master, 5);
    master.tell(worker.actor, TrainMessage{.run = 1});
    master.die();
  }
  CHECK(worker.work.withdrawals == 1);
  worker.work.runs.clear();
  test::Peer next(worker.quiet);
  worker.admitted(next, 9);
  CHECK_FALSE(worker.end.over());
}

TEST_CASE("a worker shows that it has a master as long as it has one") {
  Worker worker;
  CHECK(signs_of_masters() == 0);
  for (const std::uint64_t number : {5U, 9U}) {
    test::Peer master(worker.quiet);
    worker.admitted(master, number);
    CHECK(signs_of_masters() == 1);
    master.die();
    CHECK(signs_of_masters() == 0);
  }
}

TEST_CASE("what another than the master says is not obeyed") {
  Worker worker;
  test::Peer master(worker.quiet), stranger(worker.quiet);
  worker.admitted(master);
  stranger.tell(worker.actor, TrainMessage{.run = 1});
  stranger.tell(worker.actor, StopMessage{"go"});
  stranger.tell(worker.actor, RefusedMessage{1, "no"});
  CHECK(worker.work.runs.empty());
  CHECK_FALSE(worker.end.over());
}

TEST_CASE("a refused worker ends with the master's reason") {
  Worker worker;
  test::Peer master(worker.quiet);
  worker.connected(master.handle());
  master.tell(worker.actor,
              RefusedMessage{static_cast<std::uint32_t>(ErrorCode::kMismatch), "other model"});
  REQUIRE(worker.ends());
  const auto failure = worker.end.wait();
  REQUIRE(failure);
  CHECK(failure->code == ErrorCode::kMismatch);
  CHECK(failure->message.find("other model") != std::string::npos);
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
  REQUIRE(worker.ends());
  CHECK_FALSE(worker.end.wait());
}

TEST_CASE("a worker bears the silence that its master asks for") {
  Worker worker;
  test::Peer master(worker.quiet);
  worker.connected(master.handle());
  CHECK_FALSE(worker.silence);
  master.tell(worker.actor,
              WelcomeMessage{.worker = 1, .store = "store", .job = "job", .silence_ms = 60000});
  CHECK(worker.silence == std::chrono::minutes{1});
}

TEST_CASE("a job that cannot be prepared ends the worker with its error") {
  Worker worker;
  test::Peer master(worker.quiet);
  worker.connected(master.handle());
  master.tell(worker.actor, WelcomeMessage{1, "store", "job", kModel.high, kModel.low});
  REQUIRE(worker.work.prepares.size() == 1);
  worker.work.prepares.front().second(Error{ErrorCode::kData, "train_lmdb: no such folder"});
  worker.quiet.run();
  REQUIRE(worker.ends());
  const auto failure = worker.end.wait();
  REQUIRE(failure);
  CHECK(failure->code == ErrorCode::kData);
}

TEST_CASE("a worker acts on its network's thread, so that orders and reports change none") {
  ActorConfig config;
  caf::actor_system system{config};
  test::ScriptedWorkerWork work;
  std::thread::id acted;
  ActorEnd end("the worker");
  end.watch(system.spawn<WorkerActor>(
      WorkerConfig{.name = "h/1/0", .device = "cpu", .master = "h:1"}, work,
      WorkerActorHooks{.connect = [](auto) {},
                       .poll_stop = [&acted]() -> std::optional<std::string> {
                         acted = std::this_thread::get_id();
                         return "asked to";
                       },
                       .bear_silence = [](auto) {},
                       .on_end = end.last_word()}));
  end.wait();
  CHECK_FALSE(end.broken());
  CHECK(acted == system.middleman().backend().thread_id());
}

}  // namespace speedo
