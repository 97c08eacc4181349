// What the master actor makes of messages, of its session's commands and of time.
#include "actors/master_actor.hpp"

#include <cmath>
#include <future>
#include <thread>
#include <utility>

#include "support/catch.hpp"

#include <speedo/base/limits.hpp>

#include "actors/system.hpp"
#include "actors/wire.hpp"
#include "train/status_messages.hpp"

#include "master_under_test.hpp"

namespace speedo {
namespace {

using test::join;
using test::kModel;
using test::Master;
using test::report;
using test::take_train;

}  // namespace

TEST_CASE("a worker that connects before the master is ready waits in the mailbox") {
  Master master;
  test::Peer peer(master.quiet);
  peer.tell(master.actor, HelloMessage{.name = "early", .device = "cpu"});
  REQUIRE_FALSE(peer.take<WelcomeMessage>());
  master.begin();
  REQUIRE(peer.take<WelcomeMessage>());
}

TEST_CASE("a run, its merge, the next run, the end with a snapshot") {
  Master master;
  master.begin();
  test::Peer peer(master.quiet);
  const std::uint64_t worker = join(master, peer);
  for (std::uint64_t iteration = 0; iteration < 4; ++iteration) {
    const TrainMessage order = take_train(peer);
    CHECK(order.iteration == iteration);
    CHECK(order.version == iteration);
    peer.tell(master.actor, report(worker, order));
    CHECK_FALSE(peer.take<TrainMessage>());  // Not before the merge is done.
    master.merged(iteration + 1);
  }
  REQUIRE(peer.take<StopMessage>());
  master.snapshot_done();
  CHECK_FALSE(master.end.over());  // The worker has yet to go.
  peer.die();
  REQUIRE(master.end.over());
  CHECK_FALSE(master.end.wait());
  CHECK(master.session->progress().merges == 4);
}

TEST_CASE("the end does not wait for ever for a worker that does not go") {
  MasterConfig config = Master::defaults();
  config.max_iteration = 1;
  config.snapshot_at_end = false;
  Master master("async", config);
  master.begin();
  test::Peer peer(master.quiet);
  const std::uint64_t worker = join(master, peer);
  peer.tell(master.actor, report(worker, take_train(peer)));
  master.merged(1);
  REQUIRE(master.ends());
  CHECK_FALSE(master.end.wait());
}

TEST_CASE("another protocol and another model are refused with a reason") {
  Master master;
  master.begin();
  test::Peer other(master.quiet);
  other.tell(master.actor,
             HelloMessage{.protocol = kProtocolVersion + 1, .name = "x", .device = "cpu"});
  const auto refused = other.take<RefusedMessage>();
  REQUIRE(refused);
  CHECK(static_cast<ErrorCode>(refused->code) == ErrorCode::kMismatch);
  CHECK_FALSE(refused->reason.empty());
  CHECK_FALSE(other.take<WelcomeMessage>());

  test::Peer stranger(master.quiet);
  stranger.tell(master.actor, HelloMessage{.name = "y", .device = "cpu"});
  const auto welcome = stranger.take<WelcomeMessage>();
  REQUIRE(welcome);
  stranger.tell(master.actor, ReadyMessage{welcome->worker, kModel.high, kModel.low + 1});
  const auto turned_away = stranger.take<RefusedMessage>();
  REQUIRE(turned_away);
  CHECK(static_cast<ErrorCode>(turned_away->code) == ErrorCode::kMismatch);
  CHECK(master.session->progress().workers_alive == 0);
}

TEST_CASE("who says hello as a worker and as a merger of a shard is the later one of the two") {
  Master master;
  master.work.parts = MasterWork::PartTerms{
      .desk = std::make_shared<PartDesk>(real_platform()),
      .parts = 2,
      .welcome = {}};
  master.begin();
  test::Peer peer(master.quiet), other(master.quiet);
  join(master, peer);
  const HelloMessage as_part{.name = "h/1/0", .device = "shard:2"};
  peer.tell(master.actor, as_part);
  const auto welcome = peer.take<WelcomeMessage>();
  REQUIRE(welcome);
  CHECK(welcome->part == 2);
  CHECK(master.session->progress().workers_alive == 0);
  // The session refuses the earlier worker no more, and the master still ends as it should.
  peer.tell(master.actor, HelloMessage{.name = "h/1/0", .device = "cpu"});
  REQUIRE(peer.take<WelcomeMessage>());
  peer.tell(master.actor, ReadyMessage{.worker = 1, .model_high = 1, .model_low = 1});
  REQUIRE(peer.take<RefusedMessage>());
  other.tell(master.actor, as_part);
  REQUIRE(other.take<WelcomeMessage>());
  master.stop = "enough";
  master.quiet.pass(kTickInterval);
  CHECK(other.take<StopMessage>());
  other.die();
  REQUIRE(master.ends());
  CHECK_FALSE(master.end.broken());
}

TEST_CASE("a merger of a shard that is sent away at the end is not missed") {
  Master master;
  const auto desk = std::make_shared<PartDesk>(real_platform());
  WelcomeMessage terms;
  terms.model_high = kModel.high;
  terms.model_low = kModel.low;
  master.work.parts = MasterWork::PartTerms{.desk = desk, .parts = 2, .welcome = terms};
  master.begin();
  test::Peer early(master.quiet), late(master.quiet);
  const auto seat = [&](test::Peer& peer, const char* device) {
    peer.tell(master.actor, HelloMessage{.name = "h/1/0", .device = device});
    const auto welcome = peer.take<WelcomeMessage>();
    REQUIRE(welcome);
    peer.tell(master.actor, ReadyMessage{welcome->worker, kModel.high, kModel.low});
    const auto offers = desk->take_offers();
    REQUIRE(offers.size() == 1);
    offers[0].link->answer_to([desk](PartAnswer answer) { desk->put({1, std::move(answer)}); });
  };
  seat(early, "shard:1");
  seat(late, "shard:2");
  early.die();
  CHECK(desk->look());
  master.stop = "enough";
  master.quiet.pass(kTickInterval);
  CHECK(late.take<StopMessage>());
  late.die();
  REQUIRE(master.ends());
  CHECK_FALSE(desk->look());
}

TEST_CASE("a stop waits for workers' states, however often it is looked at") {
  MasterConfig config = Master::defaults();
  config.snapshot_workers = true;
  Master master("async", config);
  master.begin();
  test::Peer peer(master.quiet);
  const std::uint64_t worker = join(master, peer);
  peer.tell(master.actor, report(worker, take_train(peer)));
  master.merged(1);
  master.stop = "enough";
  for (int i = 0; i < 5; ++i) master.quiet.pass(kTickInterval);
  CHECK_FALSE(peer.take<StopMessage>());
  const auto save = peer.take<SaveStateMessage>();
  REQUIRE(save);
  peer.tell(master.actor, StateSavedMessage{worker, save->iteration, 0, {}});
  CHECK(peer.take<StopMessage>());
  REQUIRE(master.work.finished_snapshots.size() == 1);
  CHECK(master.work.finished_snapshots.front().workers.size() == 1);
}

TEST_CASE("who asks how the job stands without end is answered from time to time") {
  Master master;
  master.begin();
  test::Peer asker(master.quiet);
  const auto answers = [&](int questions) {
    int count = 0;
    for (int i = 0; i < questions; ++i) {
      asker.tell(master.actor, StatusRequestMessage{});
      while (asker.take<JobStatusMessage>()) ++count;
    }
    return count;
  };
  CHECK(answers(100) == 1);
  master.quiet.pass(kStatusPause / 2);
  CHECK(answers(100) == 0);
  for (int i = 0; i < 3; ++i) {
    master.quiet.pass(kStatusPause);
    CHECK(answers(100) == 1);
  }
}

TEST_CASE("who has asked of late how the job stands hears of its end unasked") {
  Master master;
  master.begin();
  test::Peer asker(master.quiet), earlier(master.quiet);
  earlier.tell(master.actor, StatusRequestMessage{});
  REQUIRE(earlier.take<JobStatusMessage>());
  master.quiet.pass(2 * kAnswerTimeout);
  asker.tell(master.actor, StatusRequestMessage{});
  REQUIRE(asker.take<JobStatusMessage>());
  master.stop = "enough";
  REQUIRE(master.ends());
  const auto last = asker.take<JobStatusMessage>();
  REQUIRE(last);
  StatusAssembly assembly;
  assembly.begin(*last);
  const auto status = assembly.take();
  REQUIRE(status);
  CHECK(status->over);
  CHECK_FALSE(asker.take<JobStatusMessage>());
  CHECK_FALSE(earlier.take<JobStatusMessage>());
}

TEST_CASE("messages of somebody who never said hello change nothing") {
  Master master;
  master.begin();
  test::Peer peer(master.quiet), stranger(master.quiet);
  const std::uint64_t worker = join(master, peer);
  const TrainMessage order = take_train(peer);
  stranger.tell(master.actor, report(worker, order));
  stranger.tell(master.actor, LeaveMessage{worker, 0, "not me"});
  stranger.tell(master.actor, ReadyMessage{worker, kModel.high, kModel.low});
  CHECK(master.work.merges.empty());
  CHECK(master.session->progress().workers_alive == 1);
  peer.tell(master.actor, report(worker, order));
  CHECK(master.work.merges.size() == 1);
}

TEST_CASE("a sync round goes on without a worker that died, and with one that came late") {
  Master master("sync");
  master.begin();
  test::Peer first(master.quiet), second(master.quiet), late(master.quiet);
  const std::uint64_t a = join(master, first);
  const TrainMessage run_a = take_train(first);
  const std::uint64_t b = join(master, second);
  first.tell(master.actor, report(a, run_a));
  // A round of its own, if the schedule began one.
  if (!master.work.merges.empty()) master.merged(1);
  const TrainMessage again = take_train(first), run_b = take_train(second);
  CHECK(again.shard != run_b.shard);
  first.tell(master.actor, report(a, again));
  CHECK(master.work.merges.empty());  // The round waits for the second worker ...
  const std::uint64_t c = join(master, late);
  CHECK(c > b);
  CHECK_FALSE(late.take<TrainMessage>());  // It takes part from the next round on.
  second.die();
  REQUIRE(master.work.merges.size() == 1);  // ... and is complete without it.
  CHECK(master.work.merges.front().job.contributions.size() == 1);
  master.merged(2);
  CHECK(take_train(first).version == take_train(late).version);
  CHECK(master.session->progress().workers_alive == 2);
}

TEST_CASE("a report that comes twice is merged once") {
  Master master;
  master.begin();
  test::Peer peer(master.quiet);
  const std::uint64_t worker = join(master, peer);
  const TrainedMessage message = report(worker, take_train(peer));
  peer.tell(master.actor, message);
  peer.tell(master.actor, message);
  master.merged(1);
  peer.tell(master.actor, message);
  CHECK(master.work.merges.empty());
  CHECK(master.session->progress().merges == 1);
}

TEST_CASE("a loss that is not finite is never merged") {
  Master master;
  master.begin();
  test::Peer peer(master.quiet);
  const std::uint64_t worker = join(master, peer);
  for (const float loss : {INFINITY, -INFINITY, NAN}) {
    peer.tell(master.actor, report(worker, take_train(peer), loss));
    CHECK(master.work.merges.empty());
  }
  CHECK(master.session->progress().rejected == 3);
  CHECK(master.session->progress().iteration == 0);
}

TEST_CASE("a request to stop ends training with a snapshot, and breaks tests off") {
  Master master;
  master.begin();
  test::Peer peer(master.quiet);
  const std::uint64_t worker = join(master, peer);
  peer.tell(master.actor, report(worker, take_train(peer)));
  master.merged(1);
  master.stop = "asked to";
  master.quiet.pass(kTickInterval);
  CHECK(master.work.tests_stopped);
  REQUIRE(peer.take<StopMessage>());
  master.snapshot_done();
  peer.die();
  REQUIRE(master.end.over());
  CHECK_FALSE(master.end.wait());
}

TEST_CASE("a merge that fails ends training with its error") {
  MasterConfig config = Master::defaults();
  config.snapshot_at_end = false;
  Master master("async", config);
  master.begin();
  test::Peer peer(master.quiet);
  const std::uint64_t worker = join(master, peer);
  peer.tell(master.actor, report(worker, take_train(peer)));
  REQUIRE(master.work.merges.size() == 1);
  master.work.merges.front().done(Error{ErrorCode::kUnavailable, "store gone"});
  master.quiet.run();
  if (!master.work.snapshots.empty()) master.snapshot_done();
  const auto refused = peer.take<RefusedMessage>();   // It waits for the next master.
  REQUIRE(refused);
  CHECK(error_code_of(refused->code) == ErrorCode::kUnavailable);
  CHECK_FALSE(peer.take<StopMessage>());
  REQUIRE(master.ends());
  const auto failure = master.end.wait();
  REQUIRE(failure);
  CHECK(failure->code == ErrorCode::kUnavailable);
}

TEST_CASE("test scores reach the progress hook, with the tested iteration") {
  MasterConfig config = Master::defaults();
  config.test_interval = 1;
  config.test_at_start = true;
  Master master("async", config);
  master.begin();
  test::Peer peer(master.quiet);
  const std::uint64_t worker = join(master, peer);
  REQUIRE(master.work.tests.size() == 1);
  peer.tell(master.actor, report(worker, take_train(peer)));
  master.merged(1);
  REQUIRE(master.session->progress().iteration == 1);  // Training goes on beside the test.
  master.work.tests.front()(std::vector<TestScores>{
      TestScores{.scores = {}, .passes = 1, .accuracy = 0.25F, .loss = 2.0F}});
  // By the thread that has tested, before the actor hears of it.
  CHECK(master.tested_by_work == std::vector<std::uint64_t>{0});
  CHECK(master.tested.empty());
  master.quiet.run();
  CHECK(master.tested == std::vector<std::uint64_t>{0});
  CHECK(master.tested_by_work.size() == 1);
  CHECK(master.session->progress().accuracy == 0.25F);
}

TEST_CASE("a worker that is silent too long is put out, and what it sends then changes nothing") {
  MasterConfig config = Master::defaults();
  config.worker_timeout = std::chrono::seconds{1};
  Master master("async", config);
  master.begin();
  test::Peer silent(master.quiet), talking(master.quiet);
  const std::uint64_t a = join(master, silent), b = join(master, talking);
  const TrainMessage lost = take_train(silent), kept = take_train(talking);
  const Instant start = master.now();
  std::uint64_t progress = 0;
  REQUIRE(master.quiet.pass_until([&] {
    talking.tell(master.actor, BeatMessage{b, kept.run, ++progress});
    return master.session->progress().workers_alive == 1;
  }));
  const Instant took = master.now() - start;
  CHECK(took >= config.worker_timeout);
  CHECK(took <= config.worker_timeout + 2 * kTickInterval);
  const auto refused = silent.take<RefusedMessage>();
  REQUIRE(refused);
  CHECK(error_code_of(refused->code) == ErrorCode::kTimeout);
  CHECK_FALSE(talking.take<RefusedMessage>());
  silent.tell(master.actor, report(a, lost));  // It wakes up and goes on where it was.
  CHECK(master.work.merges.empty());
  // It is welcome as a new incarnation.
  CHECK(join(master, silent) > b);
}

TEST_CASE("a master whose job was taken over ends, and sends its workers to the other one") {
  Master master;
  master.begin(master.now() + std::chrono::hours{1});
  test::Peer peer(master.quiet), late(master.quiet);
  join(master, peer);
  master.notice(master_event::StoreLost{{ErrorCode::kSuperseded, "h/2 has the job"}});
  const auto refused = peer.take<RefusedMessage>();
  REQUIRE(refused);
  CHECK(error_code_of(refused->code) == ErrorCode::kUnavailable);
  CHECK(master.work.snapshots.empty());
  late.tell(master.actor, HelloMessage{.name = "h/2/0", .device = "cpu"});
  const auto answer = late.take<RefusedMessage>();
  REQUIRE(answer);
  CHECK(error_code_of(answer->code) == ErrorCode::kUnavailable);
  CHECK_FALSE(late.take<StopMessage>());
  late.die();
  REQUIRE(master.ends());
  const auto failure = master.end.wait();
  REQUIRE(failure);
  CHECK(failure->code == ErrorCode::kSuperseded);
}

TEST_CASE("a resumed master whose job is over stays until its workers have heard it") {
  MasterConfig config = Master::defaults();
  config.start_iteration = config.max_iteration;
  config.snapshot_at_end = false;
  Master master("async", config);
  master.begin(master.now() + std::chrono::milliseconds{500});
  CHECK_FALSE(master.end.over());
  test::Peer late(master.quiet);
  late.tell(master.actor, HelloMessage{.name = "h/1/0", .device = "cpu"});
  REQUIRE(late.take<StopMessage>());
  late.die();
  CHECK_FALSE(master.end.over());  // There may be more.
  REQUIRE(master.ends());
  CHECK_FALSE(master.end.wait());
}

TEST_CASE("between stages the master's work makes ready for the next one") {
  MasterConfig config = Master::defaults();
  config.stages = {Schedule{}, Schedule{}};
  config.stages[0].iterations = 1;
  config.stages[1].strategy.name = "sync";
  Master master("async", config);
  master.begin();
  test::Peer peer(master.quiet);
  const std::uint64_t worker = join(master, peer);
  const TrainMessage first = take_train(peer);
  CHECK(first.stage == 0);
  peer.tell(master.actor, report(worker, first));
  master.merged(1);
  CHECK_FALSE(peer.take<TrainMessage>());
  REQUIRE(master.work.stages.size() == 1);
  CHECK(master.work.stages.front().first == 1);
  const auto entered = std::exchange(master.work.stages, {});
  entered.front().second(Version{2});
  master.quiet.run();
  const TrainMessage second = take_train(peer);
  CHECK(second.stage == 1);
  CHECK(second.version == 2);
  peer.tell(master.actor, report(worker, second));
  master.merged(3);
  CHECK(take_train(peer).iteration == 2);
}

TEST_CASE("a stage that cannot be entered ends training with its error") {
  MasterConfig config = Master::defaults();
  config.stages = {Schedule{}, Schedule{}};
  config.stages[0].iterations = 1;
  config.snapshot_at_end = false;
  Master master("async", config);
  master.begin();
  test::Peer peer(master.quiet);
  const std::uint64_t worker = join(master, peer);
  peer.tell(master.actor, report(worker, take_train(peer)));
  master.merged(1);
  REQUIRE(master.work.stages.size() == 1);
  master.work.stages.front().second(Error{ErrorCode::kUnavailable, "store gone"});
  master.quiet.run();
  if (!master.work.snapshots.empty()) master.snapshot_done();
  peer.die();
  REQUIRE(master.ends());
  const auto failure = master.end.wait();
  REQUIRE(failure);
  CHECK(failure->code == ErrorCode::kUnavailable);
}

TEST_CASE("a master acts on its network's thread, so that orders and reports change none") {
  ActorConfig config;
  caf::actor_system system{config};
  MasterSession session(Master::defaults());
  test::ScriptedMasterWork work;
  std::promise<std::thread::id> acted;
  bool has_acted = false;  // of the actor
  ActorEnd end("the master");
  const auto actor = system.spawn<MasterActor>(MasterActorHooks{
      .poll_stop = [&]() -> std::optional<std::string> {
        if (!std::exchange(has_acted, true)) acted.set_value(std::this_thread::get_id());
        return std::nullopt;
      },
      .poll_snapshot = [] { return false; },
      .on_progress = [](const MasterProgress&, const std::vector<TestScores>*) {},
      .on_end = end.last_word()});
  end.watch(actor);
  caf::anon_send(actor, BeginMessage{&session, &work, {}});
  CHECK(acted.get_future().get() == system.middleman().backend().thread_id());
}

}  // namespace speedo
