// The master actor with its real session and schedule; peers and work are the test's.
#include "actors/master_actor.hpp"

#include <bit>
#include <cmath>
#include <thread>
#include <utility>

#include "support/catch.hpp"

#include <speedo/base/clock.hpp>
#include <speedo/base/limits.hpp>

#include "support.hpp"

namespace speedo {
namespace {

constexpr Digest kModel{11, 22};

struct Master {
  explicit Master(const std::string& schedule = "async", MasterConfig config = defaults()) {
    config.stages.front().strategy.name = schedule;
    session.emplace(std::move(config));
    actor = quiet.system.spawn<MasterActor>(MasterActorHooks{
        .poll_stop = [this] { return stop; },
        .on_progress = [this](
                           const MasterProgress&,
                           const std::vector<TestScores>* scores) { reports += scores != nullptr; },
        .on_end =
            [this](std::optional<Error> error) {
              ended = true;
              failure = std::move(error);
            }});
  }
  ~Master() { caf::anon_send_exit(actor, caf::exit_reason::kill); quiet.run(); }

  static MasterConfig defaults() {
    MasterConfig config;
    config.max_iteration = 4;
    config.model = kModel;
    config.store_uri = "127.0.0.1:1";
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
  // Lets real time pass until `done`, as actor and session read the real clock.
  template <class Done>
  bool wait_for(Done done) {
    const Instant start = steady_clock().now();
    while (!done() && steady_clock().now() - start < std::chrono::seconds{10}) {
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
      quiet.pass(kTickInterval);
    }
    return done();
  }
  // Answers the only merge that waits.
  void merged(std::uint64_t version) {
    REQUIRE(work.merges.size() == 1);
    const auto order = std::move(work.merges.front());
    work.merges.clear();
    order.done(MergeResult{.version = Version{version}, .rejected = {}});
    quiet.run();
  }
  void snapshot_done() {
    REQUIRE(work.snapshots.size() == 1);
    const auto order = std::move(work.snapshots.front());
    work.snapshots.clear();
    order.done({});
    quiet.run();
  }

  test::QuietSystem quiet;
  test::ScriptedMasterWork work;
  std::optional<MasterSession> session;
  caf::actor actor;
  std::optional<std::string> stop;
  int reports = 0;
  bool ended = false;
  std::optional<Error> failure;
};

// A peer that was admitted and is ready; gives its worker number.
std::uint64_t join(Master& master, test::Peer& peer) {
  peer.tell(master.actor, HelloMessage{.name = "h/1/0", .device = "cpu"});
  const auto welcome = peer.take<WelcomeMessage>();
  REQUIRE(welcome);
  CHECK(welcome->store == "127.0.0.1:1");
  peer.tell(master.actor, ReadyMessage{welcome->worker, kModel.high, kModel.low});
  return welcome->worker;
}

TrainMessage take_train(test::Peer& peer) {
  const auto order = peer.take<TrainMessage>();
  REQUIRE(order);
  return *order;
}

TrainedMessage report(std::uint64_t worker, const TrainMessage& order, float loss = 0.5F) {
  return {.worker = worker,
          .run = order.run,
          .loss_bits = std::bit_cast<std::uint32_t>(loss),
          .base_version = order.version,
          .samples = 8};
}

}  // namespace

TEST_CASE("a worker that knocks before the master is ready waits in the mailbox") {
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
  CHECK_FALSE(master.ended);  // The worker has yet to go.
  peer.die();
  CHECK(master.ended);
  CHECK_FALSE(master.failure);
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
  CHECK(master.wait_for([&] { return master.ended; }));
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
  CHECK(again.data_run != run_b.data_run);
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
  CHECK(master.ended);
  CHECK_FALSE(master.failure);
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
  REQUIRE(master.wait_for([&] { return master.ended; }));
  REQUIRE(master.failure);
  CHECK(master.failure->code == ErrorCode::kUnavailable);
}

TEST_CASE("test scores reach the progress hook, with the tested iteration") {
  MasterConfig config = Master::defaults();
  config.test_interval = 1;
  config.test_at_start = true;
  Master master("async", config);
  master.begin();
  test::Peer peer(master.quiet);
  join(master, peer);
  REQUIRE(master.work.tests.size() == 1);
  master.work.tests.front()(std::vector<TestScores>{
      TestScores{.scores = {}, .passes = 1, .accuracy = 0.25F, .loss = 2.0F}});
  master.quiet.run();
  CHECK(master.reports == 1);
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
  const Instant start = steady_clock().now();
  std::uint64_t progress = 0;
  REQUIRE(master.wait_for([&] {
    talking.tell(master.actor, BeatMessage{b, kept.run, ++progress});
    return master.session->progress().workers_alive == 1;
  }));
  const Instant took = steady_clock().now() - start;
  CHECK(took >= config.worker_timeout);
  CHECK(took < config.worker_timeout + std::chrono::milliseconds{1000});
  const auto refused = silent.take<RefusedMessage>();
  REQUIRE(refused);
  CHECK(error_code_of(refused->code) == ErrorCode::kTimeout);
  CHECK_FALSE(talking.take<RefusedMessage>());
  silent.tell(master.actor, report(a, lost));  // It wakes up and goes on where it was.
  CHECK(master.work.merges.empty());
  // It is welcome as a new life.
  CHECK(join(master, silent) > b);
}

TEST_CASE("a master whose job was taken over ends, and sends its workers to the other one") {
  Master master;
  master.begin(steady_clock().now() + std::chrono::hours{1});
  test::Peer peer(master.quiet), late(master.quiet);
  join(master, peer);
  master.notice(master_event::StoreLost{{ErrorCode::kSuperseded, "h/2 has the job"}});
  const auto refused = peer.take<RefusedMessage>();
  REQUIRE(refused);
  CHECK(error_code_of(refused->code) == ErrorCode::kUnavailable);
  CHECK(master.work.snapshots.empty());
  late.tell(master.actor, HelloMessage{.name = "h/2/0", .device = "cpu"});
  if (const auto answer = late.take<RefusedMessage>()) {
    CHECK(error_code_of(answer->code) == ErrorCode::kUnavailable);
  }
  CHECK_FALSE(late.take<StopMessage>());
  late.die();
  REQUIRE(master.wait_for([&] { return master.ended; }));
  REQUIRE(master.failure);
  CHECK(master.failure->code == ErrorCode::kSuperseded);
}

TEST_CASE("a resumed master whose job is over stays until its workers have heard it") {
  MasterConfig config = Master::defaults();
  config.start_iteration = config.max_iteration;
  config.snapshot_at_end = false;
  Master master("async", config);
  master.begin(steady_clock().now() + std::chrono::milliseconds{500});
  CHECK_FALSE(master.ended);
  test::Peer late(master.quiet);
  late.tell(master.actor, HelloMessage{.name = "h/1/0", .device = "cpu"});
  REQUIRE(late.take<StopMessage>());
  late.die();
  CHECK_FALSE(master.ended);  // There may be more.
  REQUIRE(master.wait_for([&] { return master.ended; }));
  CHECK_FALSE(master.failure);
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
  REQUIRE(master.wait_for([&] { return master.ended; }));
  REQUIRE(master.failure);
  CHECK(master.failure->code == ErrorCode::kUnavailable);
}

}  // namespace speedo
