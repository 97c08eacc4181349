// A name that takes for ever to be resolved keeps nobody.
#include "actors/name_lookup.hpp"

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>

#include "support/catch.hpp"

#include "actors/system.hpp"
#include "actors/transport.hpp"

namespace speedo {
namespace {

const Address kSomewhere{.host = "somewhere.invalid", .port = 1};

// A look-up that lasts until the test ends it.
struct SlowLookUp {
  std::promise<void> asked, answer, forgotten;

  // What it holds tells when it is freed.
  LookUp function() {
    const std::shared_ptr<SlowLookUp> held(this, [](SlowLookUp* it) { it->forgotten.set_value(); });
    return [held](const Address&) -> Result<HostAddresses> {
      held->asked.set_value();
      held->answer.get_future().get();
      return Error{ErrorCode::kUnavailable, "answered at last"};
    };
  }
};

}  // namespace

TEST_CASE("the system knows its own name, and not every other") {
  const std::atomic<bool> stop{false};
  const auto found = look_up_until(stop, ask_system, {.host = "localhost", .port = 7});
  REQUIRE(found);
  CHECK((*found)->ai_addr != nullptr);
  const auto numbers = look_up_until(stop, ask_system, {.host = "127.0.0.1", .port = 7});
  REQUIRE(numbers);
  CHECK((*numbers)->ai_family == AF_INET);
  CHECK_FALSE(look_up_until(stop, ask_system, {.host = "no such name", .port = 7}));
}

TEST_CASE("whoever waits for a name can be stopped; the look-up ends by itself, later") {
  SlowLookUp slow;
  std::atomic<bool> stop{false};
  auto waiting = std::async(std::launch::async, [&stop, look_up = slow.function()] {
    return look_up_until(stop, look_up, kSomewhere);
  });
  slow.asked.get_future().get();
  stop = true;
  const auto found = waiting.get();
  REQUIRE_FALSE(found);
  CHECK(found.error().code == ErrorCode::kUnavailable);
  CHECK(found.error().message.find("somewhere.invalid") != std::string::npos);
  waiting = {};
  slow.answer.set_value();
  slow.forgotten.get_future().get();
}

TEST_CASE("a connector can go while a name is being resolved; who asked is told") {
  ActorConfig config;
  caf::actor_system system{config};
  SlowLookUp slow;
  std::promise<Result<caf::actor>> done;
  {
    std::optional<Connector> connector;
    connector.emplace(system, ProbeTools{.look_up = slow.function()});
    connector->connect(kSomewhere, [&](Result<caf::actor> found) {
      done.set_value(std::move(found));
    });
    slow.asked.get_future().get();
  }
  const auto found = done.get_future().get();
  REQUIRE_FALSE(found);
  CHECK(found.error().code == ErrorCode::kUnavailable);
  slow.answer.set_value();
  slow.forgotten.get_future().get();
}

TEST_CASE("a look-up that throws is an error, and the connector goes on") {
  const LookUp broken = [](const Address&) -> Result<HostAddresses> {
    throw std::runtime_error("no room");
  };
  ActorConfig config;
  caf::actor_system system{config};
  Connector connector(system, ProbeTools{.look_up = broken});
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
