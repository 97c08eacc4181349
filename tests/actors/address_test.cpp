#include "support/catch.hpp"

#include "actors/node.hpp"

namespace speedo {
namespace {

void require_address(const std::string& text, const std::string& host, std::uint16_t port) {
  CAPTURE(text);
  const auto address = parse_address(text);
  REQUIRE(address);
  CHECK(address->host == host);
  CHECK(address->port == port);
}

}  // namespace

TEST_CASE("all forms of a master's address are understood") {
  require_address("127.0.0.1:4000", "127.0.0.1", 4000);
  require_address("node-7.cluster:1", "node-7.cluster", 1);
  require_address("speedo://localhost:65535", "localhost", 65535);
  require_address("speedo://localhost:4000/", "localhost", 4000);
  require_address("akka.tcp://SpeeDO@10.0.0.2:56126/user/host", "10.0.0.2", 56126);
  require_address("akka.tcp://SpeeDO@10.0.0.2:56126", "10.0.0.2", 56126);
  require_address("[::1]:4000", "::1", 4000);
  require_address("speedo://[fe80::1%eth0.5]:4000", "fe80::1%eth0.5", 4000);
}

TEST_CASE("what is not an address is a usage error that names it and the forms") {
  const char* const bad[] = {"",           "host",         ":4000",         "host:",
                             "host:0",     "host:65536",   "host:-1",       "host:4000x",
                             "host:4 000", "http://a:80",  "a b:4000",      "::1:4000",
                             "host: 4000", "speedo://:1",  "akka.tcp://a:1", "speedo://host:1/x",
                             "[::1:4000",  "[]:4000",      "[::1%]:4000",   "[::1%a b]:4"};
  for (const char* text : bad) {
    CAPTURE(text);
    const auto address = parse_address(text);
    REQUIRE_FALSE(address);
    CHECK(address.error().code == ErrorCode::kUsage);
    CHECK(address.error().message.find('\'' + std::string(text) + '\'') != std::string::npos);
    CHECK(address.error().message.find("host:port") != std::string::npos);
  }
}

TEST_CASE("a name and a password before the host are not repeated") {
  for (const char* text :
       {"speedo://u:SECRET@host:1", "u:SECRET@host:1", "u:SECRET@host", "SECRET@host:80",
        "speedo://u:SECRET@x@host", "akka.tcp://u:SECRET@host:x", "rediss://u:SECRET@host:1/0",
        "u:SECRET://@host:1"}) {
    CAPTURE(text);
    const auto address = parse_address(text);
    REQUIRE_FALSE(address);
    CHECK(address.error().message.find("...@host") != std::string::npos);
    CHECK(address.error().message.find("SECRET") == std::string::npos);
  }
}

}  // namespace speedo
