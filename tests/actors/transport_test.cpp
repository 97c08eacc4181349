// How masters are found: names that take for ever, connections whose actor is gone.
#include "actors/transport.hpp"

#include <future>
#include <optional>
#include <stdexcept>

#include "support/catch.hpp"
#include "support/slow_look_up.hpp"

#include "actors/system.hpp"

namespace speedo {
namespace {

const Address kSomewhere{.host = "somewhere.invalid", .port = 1};

class Idle final : public caf::event_based_actor {
 public:
  using event_based_actor::event_based_actor;
  caf::behavior make_behavior() override {
    return {[](int) {}};
  }
};

}  // namespace

TEST_CASE("a connector can go while a name is being resolved; who asked is told") {
  const auto gate = open_gate(GateRole::kWorker, {}).value();
  ActorConfig config;
  caf::actor_system system{config};
  test::SlowLookUp slow;
  std::promise<Result<caf::actor>> done;
  {
    std::optional<Connector> connector;
    connector.emplace(system, *gate, CallTools{.look_up = slow.function()});
    connector->connect(kSomewhere,
                       [&](Result<caf::actor> found) { done.set_value(std::move(found)); });
    slow.asked.get_future().get();
  }
  const auto found = done.get_future().get();
  REQUIRE_FALSE(found);
  CHECK(found.error().code == ErrorCode::kUnavailable);
  slow.answer.set_value();
  slow.forgotten.get_future().get();
}

TEST_CASE("an actor that has ended is not found again, though its connection stands") {
  const auto served = open_gate(GateRole::kMaster, {}).value(), calling =
      open_gate(GateRole::kWorker, {}).value();
  ActorConfig config, other_config;
  caf::actor_system system{config}, other{other_config};
  const caf::actor whom = system.spawn<Idle>();
  const auto published = Publication::create(system, *served, whom, "127.0.0.1", 0).value();
  Connector connector(other, *calling);
  const auto find = [&] {
    std::promise<Result<caf::actor>> done;
    connector.connect({.host = "127.0.0.1", .port = published->port()},
                      [&](Result<caf::actor> found) { done.set_value(std::move(found)); });
    return done.get_future().get();
  };
  const auto found = find();
  REQUIRE(found);
  CHECK(find().value() == *found);
  CHECK(served->counts().connections == 1);
  std::promise<void> ended;
  compat::on_end(*found, [&](const std::string&) { ended.set_value(); });
  caf::anon_send_exit(whom, caf::exit_reason::kill);
  ended.get_future().get();
  static_cast<void>(find().has_value());  // it is still published, but what for?
  CHECK(served->counts().connections == 2);
}

TEST_CASE("a look-up that throws is an error, and the connector goes on") {
  const LookUp broken = [](const std::string&, int) -> Result<HostAddresses> {
    throw std::runtime_error("no room");
  };
  const auto gate = open_gate(GateRole::kWorker, {}).value();
  ActorConfig config;
  caf::actor_system system{config};
  Connector connector(system, *gate, CallTools{.look_up = broken});
  for (int i = 0; i < 2; ++i) {
    std::promise<Result<caf::actor>> done;
    connector.connect(kSomewhere,
                      [&](Result<caf::actor> found) { done.set_value(std::move(found)); });
    const auto found = done.get_future().get();
    REQUIRE_FALSE(found);
    CHECK(found.error().code == ErrorCode::kInternal);
    CHECK(found.error().message.find("no room") != std::string::npos);
  }
}

}  // namespace speedo
