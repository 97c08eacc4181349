// No way in which an actor can end is missed.
#include "actors/actor_end.hpp"

#include <atomic>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

#include "actors/actor_base.hpp"
#include "actors/system.hpp"
#include "actors/transport.hpp"

#include "master_under_test.hpp"
#include "worker_under_test.hpp"

namespace speedo {
namespace {

using test::Master;
using test::Peer;
using test::report;
using test::take_train;
using test::Worker;

struct NamedEnd {
  std::string name;
  std::function<void(const caf::actor& actor)> bring_about;
};

NamedEnd exit_with(const std::string& name, const caf::error& reason) {
  return {name, [reason](const caf::actor& actor) {
            caf::anon_send(actor, caf::exit_msg{actor.address(), reason});
          }};
}

// Ends that anybody who has an actor's address can bring about.
std::vector<NamedEnd> ends_from_outside() {
  using caf::exit_reason;
  return {exit_with("unhandled_exception", exit_reason::unhandled_exception),
          exit_with("unknown", exit_reason::unknown),
          exit_with("out_of_workers", exit_reason::out_of_workers),
          exit_with("user_shutdown", exit_reason::user_shutdown),
          exit_with("kill", exit_reason::kill),
          exit_with("remote_link_unreachable", exit_reason::remote_link_unreachable),
          exit_with("unreachable", exit_reason::unreachable),
          exit_with("runtime_error", caf::make_error(caf::sec::runtime_error, std::string("x"))),
          {"error", [](const caf::actor& actor) {
             caf::anon_send(actor, caf::make_error(caf::sec::bad_function_call));
           }}};
}

void require_broken(ActorEnd& end, const std::string& cause = "") {
  REQUIRE(end.over());
  CHECK(end.broken());
  const auto error = end.wait();
  REQUIRE(error);
  CHECK(error->code == ErrorCode::kInternal);
  INFO(error->message);
  CHECK(error->message.find("ended unexpectedly (") != std::string::npos);
  CHECK(error->message.find(cause) != std::string::npos);
}

// Does what the message says.
struct Order {
  std::function<void(caf::event_based_actor*)> carry_out;
};

class Obedient : public ActorBase {
 public:
  explicit Obedient(caf::actor_config& config) : ActorBase(config) {
    compat::end_on_exceptions(this);
  }

 protected:
  caf::behavior make_behavior() override {
    return {[this](const Order& order) { order.carry_out(this); }};
  }
};

class Stillborn : public Obedient {
 public:
  using Obedient::Obedient;

 protected:
  caf::behavior make_behavior() override { throw std::runtime_error("stillborn"); }
};

}  // namespace
}  // namespace speedo

SPEEDO_LOCAL_MESSAGE(speedo::Order)

namespace speedo {

TEST_CASE("an actor that ends by itself is broken unless it said its last word") {
  const std::vector<std::pair<std::string, std::function<void(caf::event_based_actor*)>>> orders = {
      {"no room", [](caf::event_based_actor*) { throw std::runtime_error("no room"); }},
      {"bad_alloc", [](caf::event_based_actor*) { throw std::bad_alloc(); }},
      {"not a std::exception", [](caf::event_based_actor*) { throw 7; }},
      {"user_shutdown",
       [](caf::event_based_actor* self) { self->quit(caf::exit_reason::user_shutdown); }},
      {"", [](caf::event_based_actor* self) { self->quit(); }},
      {"", [](caf::event_based_actor* self) { self->unbecome(); }}};
  for (const auto& [cause, order] : orders) {
    test::QuietSystem quiet;
    ActorEnd end("it");
    const auto actor = quiet.system.spawn<Obedient>();
    end.watch(actor);
    quiet.run();
    CHECK_FALSE(end.over());
    caf::anon_send(actor, Order{order});
    quiet.run();
    require_broken(end, cause);
  }
  for (const std::optional<Error>& word :
       {std::optional<Error>{}, std::optional<Error>{{ErrorCode::kData, "no data"}}}) {
    test::QuietSystem quiet;
    ActorEnd end("it");
    const auto actor = quiet.system.spawn<Obedient>();
    end.watch(actor);
    caf::anon_send(actor, Order{[&](caf::event_based_actor* self) {
      end.last_word()(word);
      end.last_word()(Error{ErrorCode::kInternal, "the second word"});
      self->quit();
    }});
    quiet.run();
    REQUIRE(end.over());
    CHECK_FALSE(end.broken());
    const auto said = end.wait();
    REQUIRE(said.has_value() == word.has_value());
    if (word) CHECK(said->code == word->code);
  }
}

TEST_CASE("an end before anybody watches, and one before the first message, are noticed") {
  test::QuietSystem quiet;
  const auto dead = quiet.system.spawn<Obedient>();
  caf::anon_send_exit(dead, caf::exit_reason::kill);
  quiet.run();
  ActorEnd late("it");
  bool told = false;
  late.watch(dead, [&] { told = true; });
  CHECK(told);
  require_broken(late);

  ActorEnd born("it");
  born.watch(quiet.system.spawn<Stillborn>());
  quiet.run();
  require_broken(born, "stillborn");
}

TEST_CASE("what dies with another by a link is noticed") {
  test::QuietSystem quiet;
  const auto actor = quiet.system.spawn<Obedient>(), other = quiet.system.spawn<Obedient>();
  ActorEnd end("it");
  end.watch(actor);
  caf::anon_send(actor, Order{[&](caf::event_based_actor* self) { self->link_to(other); }});
  quiet.run();
  caf::anon_send_exit(other, caf::exit_reason::kill);
  quiet.run();
  require_broken(end);
}

TEST_CASE("the owner's going ends its actor, and waits for it") {
  ActorConfig config;
  caf::actor_system system{config};
  std::atomic<bool> gone{false};
  {
    ActorEnd end("it");
    end.watch(system.spawn<Obedient>(), [&] { gone = true; });
  }
  CHECK(gone);
}

TEST_CASE("an actor ends with the network that it needs, and its owner hears why") {
  ActorConfig config;
  caf::actor_system system{config};
  ActorEnd end("it");
  end.watch(system.spawn<Obedient>());
  end.watch_need("the network", compat::network_broker(system));
  caf::anon_send_exit(compat::network_broker(system), caf::exit_reason::kill);
  const auto error = end.wait();
  REQUIRE(error);
  CHECK(error->code == ErrorCode::kInternal);
  CHECK(error->message.find("the network ended: ") != std::string::npos);
  CHECK(end.broken());
}

TEST_CASE("a master's end is noticed before it begins, idle, merging, testing, snapshotting") {
  const auto idle = [](Master&, Peer&) {};
  const auto merging = [](Master& master, Peer& peer) {
    const std::uint64_t worker = join(master, peer);
    peer.tell(master.actor, report(worker, take_train(peer)));
    REQUIRE(master.work.merges.size() == 1);
  };
  const auto testing = [](Master& master, Peer& peer) {
    join(master, peer);
    REQUIRE(master.work.tests.size() == 1);
  };
  const auto snapshotting = [&](Master& master, Peer& peer) {
    merging(master, peer);
    master.merged(1);
    REQUIRE(master.work.snapshots.size() == 1);
  };
  const std::vector<std::function<void(Master&, Peer&)>> moments = {idle, merging, testing,
                                                                   snapshotting};
  for (const NamedEnd& each : ends_from_outside()) {
    INFO(each.name);
    Master unborn;
    each.bring_about(unborn.actor);
    unborn.quiet.run();
    require_broken(unborn.end);
    for (const auto& moment : moments) {
      MasterConfig config = Master::defaults();
      config.snapshot_interval = 1;
      config.test_interval = 1;
      config.test_at_start = true;
      Master master("async", config);
      master.begin();
      Peer peer(master.quiet);
      moment(master, peer);
      CHECK_FALSE(master.end.over());
      each.bring_about(master.actor);
      master.quiet.run();
      require_broken(master.end);
      // What was under way is answered later, and nobody minds.
      for (auto& merge : master.work.merges) merge.done(Error{});
      for (auto& test : master.work.tests) test(Error{});
      for (auto& snapshot : master.work.snapshots) snapshot.done({});
      master.quiet.run();
    }
  }
}

TEST_CASE("a master's end is noticed while it waits for its last workers to go") {
  for (const NamedEnd& each : ends_from_outside()) {
    INFO(each.name);
    MasterConfig config = Master::defaults();
    config.max_iteration = 1;
    config.snapshot_at_end = false;
    Master master("async", config);
    master.begin();
    Peer peer(master.quiet);
    const std::uint64_t worker = join(master, peer);
    peer.tell(master.actor, report(worker, take_train(peer)));
    master.merged(1);
    CHECK_FALSE(master.end.over());
    each.bring_about(master.actor);
    master.quiet.run();
    require_broken(master.end);
  }
}

TEST_CASE("an exception in what the master calls ends it with its text") {
  test::QuietSystem quiet;
  MasterSession session(Master::defaults());
  test::ScriptedMasterWork work;
  ActorEnd end("the master");
  const auto actor = quiet.system.spawn<MasterActor>(MasterActorHooks{
      .poll_stop = []() -> std::optional<std::string> { throw std::length_error("too long"); },
      .poll_snapshot = [] { return false; },
      .on_progress = [](const MasterProgress&, const std::vector<TestScores>*) {},
      .on_end = end.last_word(),
      .clock = &quiet.clock});
  end.watch(actor);
  caf::anon_send(actor, BeginMessage{&session, &work, {}});
  quiet.run();
  require_broken(end, "too long");
}

TEST_CASE("a worker's end is noticed alone, greeting, preparing, ready, at a run") {
  const auto alone = [](Worker&, Peer&) {};
  const auto greeting = [](Worker& worker, Peer& master) { worker.connected(master.handle()); };
  const auto preparing = [](Worker& worker, Peer& master) {
    worker.connected(master.handle());
    master.tell(worker.actor, WelcomeMessage{.worker = 5, .store = "store", .job = "job"});
    REQUIRE(worker.work.prepares.size() == 1);
  };
  const auto ready = [](Worker& worker, Peer& master) { worker.admitted(master); };
  const auto running = [](Worker& worker, Peer& master) {
    worker.admitted(master);
    master.tell(worker.actor, TrainMessage{.run = 1});
    REQUIRE(worker.work.runs.size() == 1);
  };
  const std::vector<std::function<void(Worker&, Peer&)>> moments = {alone, greeting, preparing,
                                                                   ready, running};
  for (const NamedEnd& each : ends_from_outside()) {
    INFO(each.name);
    for (const auto& moment : moments) {
      Worker worker;
      Peer master(worker.quiet);
      moment(worker, master);
      CHECK_FALSE(worker.end.over());
      each.bring_about(worker.actor);
      worker.quiet.run();
      require_broken(worker.end);
      for (auto& [welcome, done] : worker.work.prepares) done(Error{});
      for (auto& [order, done] : worker.work.runs) done(Error{});
      for (auto& done : worker.connects) done(Error{});
      worker.quiet.run();
    }
  }
}

TEST_CASE("an exit message that means no fault ends nobody") {
  Master master;
  master.begin();
  caf::anon_send_exit(master.actor, caf::exit_reason::normal);
  master.quiet.run();
  CHECK_FALSE(master.end.over());
  Worker worker;
  caf::anon_send_exit(worker.actor, caf::exit_reason::normal);
  worker.quiet.run();
  CHECK_FALSE(worker.end.over());
}

}  // namespace speedo
