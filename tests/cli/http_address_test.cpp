#include "cli/http_address.hpp"

#include "support/catch.hpp"

namespace speedo {
namespace {

TEST_CASE("Addresses are written in four ways") {
  const auto parsed = [](const char* text) {
    const auto address = parse_http_address(text);
    return address ? address->host + " " + std::to_string(address->port) : "error";
  };
  CHECK(parsed("9464") == "127.0.0.1 9464");
  CHECK(parsed(":9464") == "127.0.0.1 9464");
  CHECK(parsed("0.0.0.0:0") == "0.0.0.0 0");
  CHECK(parsed("[::1]:80") == "::1 80");
  CHECK(parsed("node-1.example.org:65535") == "node-1.example.org 65535");
  CHECK(parsed("speedo_master_1:80") == "speedo_master_1 80");
  for (const char* wrong : {"", "host", "host:", "host:70000", "host:-1", "::1:80", "a:b"}) {
    INFO(wrong);
    const auto address = parse_http_address(wrong);
    REQUIRE_FALSE(address);
    CHECK(address.error().code == ErrorCode::kUsage);
  }
}

TEST_CASE("What stands before the port is one host, never a list or an option of the server") {
  for (const char* wrong :
       {"19491,127.0.0.1:19492", "127.0.0.1:1,127.0.0.1:2", " 127.0.0.1:80", " 9464", "9464 ",
        "+:80", "127.0.0.1 :80", "a/b:80", "256.0.0.1:80", "127.1:80", "[127.0.0.1]:80",
        "[::1:80", "[::1]x:80", "-a:80", ".a:80", "80s", "127.0.0.1:80s", "127.0.0.1:65536"}) {
    INFO(wrong);
    const auto address = parse_http_address(wrong);
    REQUIRE_FALSE(address);
    CHECK(address.error().code == ErrorCode::kUsage);
    CHECK(address.error().message.find(wrong) != std::string::npos);
  }
  const auto bare = parse_http_address("::1:80");
  REQUIRE_FALSE(bare);
  CHECK(bare.error().message.find("[ADDRESS]:PORT") != std::string::npos);
}

}  // namespace
}  // namespace speedo
