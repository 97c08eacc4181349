// A name that takes for ever to be resolved keeps nobody.
#include "base/name_lookup.hpp"

#include <atomic>
#include <future>

#include <sys/socket.h>

#include "support/catch.hpp"
#include "support/slow_look_up.hpp"

namespace speedo {
namespace {

bool never() { return false; }

}  // namespace

TEST_CASE("the system knows its own name, and not every other") {
  const auto found = look_up_until(never, ask_system, "localhost", 7);
  REQUIRE(found);
  CHECK((*found)->ai_addr != nullptr);
  CHECK_FALSE(look_up_until(never, ask_system, "no such name", 7));
}

TEST_CASE("an address in numbers is asked of nobody") {
  const LookUp nobody = [](const std::string&, int) -> Result<HostAddresses> {
    return Error{ErrorCode::kInternal, "asked"};
  };
  const auto found = look_up_until([] { return true; }, nobody, "127.0.0.1", 7);
  REQUIRE(found);
  CHECK((*found)->ai_family == AF_INET);
  CHECK(numeric_host(**found) == "127.0.0.1");
  const auto longer = look_up_until([] { return true; }, nobody, "::1", 7);
  REQUIRE(longer);
  CHECK(numeric_host(**longer) == "::1");
}

TEST_CASE("whoever waits for a name can be stopped; the look-up ends by itself, later") {
  test::SlowLookUp slow;
  std::atomic<bool> stop{false};
  auto waiting = std::async(std::launch::async, [&stop, look_up = slow.function()] {
    return look_up_until([&] { return stop.load(); }, look_up, "somewhere.invalid", 1);
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

}  // namespace speedo
