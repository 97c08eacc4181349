// Connections to Redis from an address of the user's choice.
#include <array>
#include <cstdio>
#include <memory>
#include <string>

#include <speedo/store/redis_store.hpp>

#include "support/catch.hpp"
#include "support/redis_server.hpp"

namespace speedo {
namespace {

// As the server sees them.
std::string clients_of(const test::RedisServer& server) {
  const std::string command = "redis-cli -p " + std::to_string(server.port()) + " client list";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  REQUIRE(pipe);
  std::string text;
  std::array<char, 4096> part{};
  while (std::fgets(part.data(), part.size(), pipe.get()) != nullptr) text += part.data();
  return text;
}

TEST_CASE("a connection comes from the address that was asked for") {
  // To Redis all but 127.0.0.1 are from outside.
  const test::RedisServer server({.extra = "protected-mode no"});
  RedisOptions options = parse_redis_uri(server.tcp_uri()).value();
  options.source = "127.0.0.2";
  const auto store = open_redis_store(options, "from");
  INFO((store ? "" : store.error().message));
  REQUIRE(store);
  CHECK((*store)->put_blob("a", "b"));
  CHECK(clients_of(server).find(" addr=127.0.0.2:") != std::string::npos);
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
    CHECK(store.error().code == ErrorCode::kUnavailable);
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
