// A master whose name takes for ever to be resolved keeps no worker.
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
