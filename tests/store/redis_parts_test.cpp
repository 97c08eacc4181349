// Addresses, error replies and the reply parser, without a server.

#include <algorithm>
#include <cstring>

#include "store/redis/redis_error.hpp"
#include "store/redis/reply_reader.hpp"
#include "store/store_under_test.hpp"

namespace speedo::test {

TEST_CASE("addresses of Redis", "[redis]") {
  const auto address = [](std::string_view text) {
    const auto parsed = parse_redis_address(text);
    require(parsed);
    return *parsed;
  };
  CHECK(address("node7").host == "node7");
  CHECK(address("node7").port == 6379);
  CHECK(address("redis://me:p%40ss@host:1234/5").db == 5);
  CHECK(address("redis://[::1]:7000/").host == "::1");
  CHECK(address("unix:///tmp/redis.sock?db=2").unix_path == "/tmp/redis.sock");
  CHECK(address("unix:///tmp/a@b.sock").unix_path == "/tmp/a@b.sock");
  for (const char* text : {"10.0.0.1:7000", "[::1]:7000", "redis://h:1/5", "unix:///tmp/redis.sock",
                           "unix:///tmp/redis.sock?db=2"}) {
    CHECK(to_string(address(text)) == text);
  }
  CHECK(to_string(address("redis://:secret@h")) == "h:6379");
}

TEST_CASE("users and passwords in addresses", "[redis]") {
  const auto credentials = [](const std::string& user_info) {
    const auto options = parse_redis_uri("redis://" + user_info + "host");
    require(options);
    CHECK(options->address.host == "host");
    return options->credentials;
  };
  CHECK(credentials("me:p%40ss%3a@").user == "me");
  CHECK(credentials("me:p%40ss%3a@").password.reveal() == "p@ss:");
  CHECK(credentials(":secret@").user.empty());
  CHECK(credentials(":secret@").password.reveal() == "secret");
  CHECK(credentials("me@").user == "me");
  CHECK(credentials("me@").password.empty());
  CHECK(credentials("").password.empty());
}

TEST_CASE("bad addresses name the fault and no password", "[redis]") {
  for (const char* uri :
       {"", ":6379", "host:", "host:0", "host:65536", "host:x", "http://host", "redis://host/x",
        "http://me:secret@host", "redis://u:%zzsecret@host", "redis://u:%-1secret@host",
        "redis://u:secret@",
        "redis://host:1?password=secret", "u:secret@host:x", "redis://:secret@host/x",
        "unix://relative", "unix://:secret@relative", "unix:///a?password=secret", "[::1", "a b",
        "redis://[::1]7000", "host:6379:1", "[[]", "a]b:1"}) {
    CAPTURE(uri);
    const auto options = parse_redis_uri(uri);
    REQUIRE(code_of(options) == ErrorCode::kUsage);
    REQUIRE_THAT(options.error().message, !Catch::Contains("secret"));
  }
  const auto tls = parse_redis_uri("rediss://:secret@host/2");
  REQUIRE(tls);
  REQUIRE(tls->address.is_tls);
  REQUIRE(to_string(tls->address) == "rediss://host:6379/2");
  REQUIRE(to_string(parse_redis_uri("rediss://host")->address) == "rediss://host:6379");
  const auto huge = parse_redis_uri("redis://:" + std::string(Secret::kBytesMax, 'x') + "@host");
  REQUIRE(code_of(huge) == ErrorCode::kUsage);
}

TEST_CASE("error replies have their kind", "[redis]") {
  const auto code = [](const char* text) { return redis_error(text, "h:1").code; };
  REQUIRE(code("OOM command not allowed") == ErrorCode::kFull);
  REQUIRE(code("MISCONF Redis is configured") == ErrorCode::kCannotWrite);
  REQUIRE(code("NOAUTH Authentication required.") == ErrorCode::kRefused);
  REQUIRE(code("WRONGPASS invalid") == ErrorCode::kRefused);
  REQUIRE(code("NOPERM this user") == ErrorCode::kRefused);
  for (const char* text :
       {"LOADING Redis is loading", "MASTERDOWN Link", "TRYAGAIN Multiple", "READONLY You can't",
        "BUSY Redis is busy", "CLUSTERDOWN Hash slot", "ERR max number of clients reached"}) {
    REQUIRE(is_transient(code(text)));
  }
  REQUIRE(code("WRONGTYPE Operation") == ErrorCode::kCorrupt);
  REQUIRE(code("MOVED 3999 127.0.0.1:6381") == ErrorCode::kUnsupported);
  REQUIRE(code("ERR something new") == ErrorCode::kInternal);
}

TEST_CASE("commands that a server does not have are named with what to do", "[redis]") {
  const auto no_scripts =
      redis_error("ERR unknown command 'EVAL', with args beginning with: 'local s'", "h:1");
  CHECK(no_scripts.code == ErrorCode::kConfig);
  CHECK_THAT(no_scripts.message,
             Catch::Contains("Sentinel") && Catch::Contains("scripts are disabled"));
  for (const char* text :
       {"ERR Unknown Redis command called from script script: 740d, on @user_script:1.",
        "ERR Error running script (call to f_740d): @user_script:1: @user_script: 1: Unknown Redis "
        "command called from Lua script",
        "ERR unknown command 'UNLINK', with args beginning with: 'key'",
        "ERR unknown command `UNLINK`, with args beginning with: `key`"}) {
    CAPTURE(text);
    const auto lacking = redis_error(text, "h:1");
    CHECK(lacking.code == ErrorCode::kConfig);
    CHECK_THAT(lacking.message, Catch::Contains("UNLINK, DEL and PTTL"));
  }
}

namespace {

// Feeds `bytes` in pieces and returns the kinds of replies, each read into the same sink.
std::vector<ReplyReader::Kind> replies(const std::string& bytes, std::size_t piece,
                                       const BulkSink& sink) {
  ReplyReader reader;
  std::vector<ReplyReader::Kind> kinds;
  std::size_t next = 0;
  while (true) {
    auto reply = reader.next(sink);
    require(reply);
    if (*reply) {
      kinds.push_back((*reply)->kind);
      continue;
    }
    if (next == bytes.size()) return kinds;
    std::size_t count = 0;
    const std::size_t end = std::min(bytes.size(), next + piece);
    for (const iovec& vector : reader.receive_into()) {
      const std::size_t taken = std::min(vector.iov_len, end - next);
      std::memcpy(vector.iov_base, bytes.data() + next, taken);
      next += taken;
      count += taken;
    }
    reader.received(count);
  }
}

}  // namespace

TEST_CASE("replies are taken apart wherever they are cut", "[redis]") {
  using Kind = ReplyReader::Kind;
  const std::string bytes =
      "+OK\r\n$6\r\nabCDEF\r\n:42\r\n-ERR no\r\n$-1\r\n$3\r\nxyz\r\n$6\r\n\r\n\r\nab\r\n"
      "$40000\r\n" +
      std::string(40000, 'z') + "\r\n+PONG\r\n";
  const std::vector<Kind> expected = {Kind::kStatus, Kind::kBulk,        Kind::kInteger,
                                      Kind::kError,  Kind::kNil,         Kind::kWrongLength,
                                      Kind::kBulk,   Kind::kWrongLength, Kind::kStatus};
  for (std::size_t piece = 1; piece <= 70; ++piece) {
    CAPTURE(piece);
    std::string head(2, ' '), body(4, ' ');
    const BulkSink sink{std::as_writable_bytes(std::span(head)),
                        std::as_writable_bytes(std::span(body)), nullptr};
    REQUIRE(replies(bytes, piece, sink) == expected);
    REQUIRE(head == "zz");  // the first bytes even of a value of another length
    REQUIRE(body == "\r\nab");
  }
  std::string whole;
  REQUIRE(replies("$6\r\nabCDEF\r\n", 3, BulkSink{{}, {}, &whole}).size() == 1);
  REQUIRE(whole == "abCDEF");
}

TEST_CASE("what is not Redis is refused", "[redis]") {
  for (const std::string& bytes :
       {std::string("HTTP/1.1 400 Bad Request\r\n"), std::string("$-2\r\n"),
        std::string("$12x\r\n"), std::string("\r\n"), std::string("*1\r\n"),
        std::string(16000, 'a'), std::string("$99999999999999999999\r\n")}) {
    ReplyReader reader;
    const std::span<iovec> into = reader.receive_into();
    std::memcpy(into[0].iov_base, bytes.data(), bytes.size());
    reader.received(bytes.size());
    REQUIRE(code_of(reader.next(BulkSink{})) == ErrorCode::kInternal);
  }
}

}  // namespace speedo::test
