// A server that a network reaches, and that asks for no password.

#include <optional>
#include <string>

#include <speedo/store/redis_facts.hpp>

#include "base/network_interfaces.hpp"
#include "store/store_under_test.hpp"
#include "support/skip.hpp"

namespace speedo::test {
namespace {

// An address of this machine that others reach too.
std::optional<std::string> network_address() {
  const auto all = interface_addresses();
  require(all);
  for (const InterfaceAddress& each : *all) {
    const bool is_v4 = each.address.find(':') == std::string::npos;
    if (is_v4 && !each.address.starts_with("127.")) return each.address;
  }
  return std::nullopt;
}

std::string open_to(const std::string& address) {
  return "bind 127.0.0.1 " + address + "\nprotected-mode no\n";
}

}  // namespace

TEST_CASE("a Redis that a network reaches must ask for a password", "[redis]") {
  const auto address = network_address();
  if (!address) SPEEDO_SKIP("this machine has no address but those of the loopback");
  const RedisServer server({.extra = open_to(*address)});
  RedisOptions options = quick_options(*address + ":" + std::to_string(server.port()));
  const auto refused = open_redis_store(options, "test");
  REQUIRE(code_of(refused) == ErrorCode::kRefused);
  CHECK_THAT(refused.error().message, Catch::Contains(*address) &&
                                          Catch::Contains("asks for no password") &&
                                          Catch::Contains("--insecure-redis"));
  const auto facts = ask_redis(options);
  require(facts);
  CHECK(facts->is_open);
  options.may_be_open = true;
  require(open_redis_store(options, "test"));
  // The loopback is this machine's own.
  require(open_redis_store(quick_options(server.tcp_uri()), "test"));
}

TEST_CASE("who has a password may use a Redis that a network reaches", "[redis]") {
  const auto address = network_address();
  if (!address) SPEEDO_SKIP("this machine has no address but those of the loopback");
  const RedisServer server({"hush", false, open_to(*address)});
  RedisOptions options = quick_options(*address + ":" + std::to_string(server.port()));
  options.credentials.password = Secret("hush");
  require(open_redis_store(options, "test"));
  // A user of one's own is no lock while the default one lets in everybody.
  const RedisServer two({"", false, open_to(*address) + "user me on >hush ~* +@all"});
  options = quick_options("redis://me:hush@" + *address + ":" + std::to_string(two.port()));
  CHECK(code_of(open_redis_store(options, "test")) == ErrorCode::kRefused);
}

}  // namespace speedo::test
