// Connections to Redis from an address of the user's choice.
#include <string>

#include <speedo/store/redis_store.hpp>

#include "support/catch.hpp"
#include "support/redis_ask.hpp"
#include "support/redis_server.hpp"

namespace speedo {
namespace {

TEST_CASE("a connection comes from the address that was asked for") {
  // To Redis all but 127.0.0.1 are from outside.
  const test::RedisServer server({.extra = "protected-mode no"});
  RedisOptions options = parse_redis_uri(server.tcp_uri()).value();
  options.source = "127.0.0.2";
  const auto store = open_redis_store(options, "from");
  INFO((store ? "" : store.error().message));
  REQUIRE(store);
  CHECK((*store)->put_blob("a", "b"));
  const std::string clients = test::ask_redis(server.port(), "CLIENT LIST");  // as it sees them
  CHECK(clients.find(" addr=127.0.0.2:") != std::string::npos);
}

TEST_CASE("an address that this machine does not have, or of another kind, is named") {
  const test::RedisServer server;
  RedisOptions options = parse_redis_uri(server.tcp_uri()).value();
  options.attempts_max = 1;
  for (const char* source : {"192.0.2.1", "::1", "nonsense"}) {
    CAPTURE(source);
    options.source = source;
    const auto store = open_redis_store(options, "from");
    REQUIRE_FALSE(store);
    // Another kind of address is not what time mends.
    const bool is_for_good = std::string(source) == "::1";
    CHECK(store.error().code == (is_for_good ? ErrorCode::kConfig : ErrorCode::kUnavailable));
    CHECK(store.error().message.find(std::string("connecting from ") + source) !=
          std::string::npos);
  }
}

TEST_CASE("a server that is not there is a refusal also from an address") {
  test::RedisServer server;
  RedisOptions options = parse_redis_uri(server.tcp_uri()).value();
  server.kill();
  options.source = "127.0.0.3";
  options.attempts_max = 1;
  const auto store = open_redis_store(options, "from");
  REQUIRE_FALSE(store);
  CHECK(store.error().message.find("refused") != std::string::npos);
}

}  // namespace
}  // namespace speedo
