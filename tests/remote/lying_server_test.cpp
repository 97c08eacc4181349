// Servers that send less, more or other bytes than they promised, or nothing at all: each ends in
// the whole file or in a named error, in bounded time, and leaves nothing that would be taken for
// the file.

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <speedo/base/clock.hpp>

#include "remote/remote_server.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

using test::bytes_of;
using test::random_bytes;
using test::RemoteCache;
using test::RemoteServer;

constexpr std::size_t kBytes = 250000;

bool holds_whole_file(const std::filesystem::path& folder) {
  for (const auto& each : std::filesystem::recursive_directory_iterator(folder / "files")) {
    if (each.is_regular_file()) return true;
  }
  return false;
}

void check_comes(RemoteCache& cache, const std::string& uri, const std::string& bytes) {
  const auto file = cache.fetch(uri);
  CAPTURE(file ? "" : file.error().message);
  REQUIRE(file);
  CHECK((bytes_of(*file) == bytes));
}

TEST_CASE("A server that breaks off is asked for the rest") {
  const RemoteServer server;
  RemoteCache cache;
  server.put("file", random_bytes(kBytes));
  check_comes(cache, server.uri("cut=30000/file"), random_bytes(kBytes));
  CHECK(server.struck("cut") >= 7);
}

TEST_CASE("A server without ranges that breaks off each time is given up") {
  const RemoteServer server;
  RemoteCache cache;
  server.put("file", random_bytes(kBytes));
  const Instant end = steady_clock().now() + std::chrono::seconds{20};
  cache.terms.stopped = [end] { return steady_clock().now() >= end; };
  const auto file = cache.fetch(server.uri("cutwhole=100000/file"));
  REQUIRE(!file);
  CHECK(file.error().code == ErrorCode::kUnavailable);
  CHECK(server.struck("cutwhole") == cache.terms.attempts_max);
  CHECK(!holds_whole_file(cache.folder()));
}

TEST_CASE("A file that is replaced while it is fetched is fetched anew") {
  const RemoteServer server;
  RemoteCache cache;
  cache.terms.connections = 1;
  server.put("file", random_bytes(kBytes));
  server.put("file.old", std::string(kBytes, 'o'));
  check_comes(cache, server.uri("replaced/file"), random_bytes(kBytes));
  CHECK(server.struck("replaced") == 1);
}

TEST_CASE("A file of no told version that is replaced meanwhile is one of the two, not a mixture") {
  const RemoteServer server;
  RemoteCache cache;
  cache.terms.connections = 1;
  const std::string old(kBytes, 'o');
  server.put("file", random_bytes(kBytes));
  server.put("file.old", old);
  check_comes(cache, server.uri("replaced=untold/file"), old);
  CHECK(server.gets() == 1);
}

TEST_CASE("A file of no told version comes by one request also where HEAD is refused") {
  const RemoteServer server;
  RemoteCache cache;
  server.put("file", random_bytes(kBytes));
  check_comes(cache, server.uri("nohead=untold/file"), random_bytes(kBytes));
  CHECK(server.gets() == 2);  // the first is for one byte, whose answer tells the size
}

TEST_CASE("Bytes that are not those of their Content-MD5 are asked for again") {
  const RemoteServer server;
  RemoteCache cache;
  server.put("file", random_bytes(50000));
  check_comes(cache, server.uri("othermd5=1/file"), random_bytes(50000));
  CHECK(server.struck("othermd5") == 1);
}

TEST_CASE("A promise that is never kept ends in an error that names it") {
  struct Lie {
    const char* fault;
    ErrorCode code;
    const char* says;
  };
  const std::vector<Lie> lies = {
      {"cut=0", ErrorCode::kUnavailable, ""},
      {"cut=999", ErrorCode::kUnavailable, ""},
      {"short", ErrorCode::kCorrupt, "has promised"},
      {"long", ErrorCode::kCorrupt, "sends more"},
      {"othermd5", ErrorCode::kCorrupt, "Content-MD5"},
      {"range", ErrorCode::kCorrupt, "were asked for"},
      {"total", ErrorCode::kCorrupt, "were asked for"},
      {"stall", ErrorCode::kTimeout, "in time"},
      {"drip", ErrorCode::kTimeout, "in time"},
      {"busy=503x99", ErrorCode::kUnavailable, "503"},
      {"busy=429x99", ErrorCode::kUnavailable, "429"},
      {"status=404", ErrorCode::kNotFound, "does not exist"},
      {"status=403", ErrorCode::kRefused, "may not be read"},
      {"status=418", ErrorCode::kData, "418"},
      {"loop=0", ErrorCode::kRefused, "redirects"},
      {"changes", ErrorCode::kUnavailable, "changed"},
      {"nolength", ErrorCode::kData, "how many bytes"},
      {"encoded=gzip", ErrorCode::kData, "Content-Encoding: gzip"},
      {"encoded=br", ErrorCode::kData, "not asked for"},
      {"headers", ErrorCode::kCorrupt, "without end"},
      {"garbage", ErrorCode::kCorrupt, "HTTP"},
      {"huge=4611686018427387904", ErrorCode::kFull, "--data-cache"},
      {"huge=99999999999999999999999", ErrorCode::kData, ""},
      {"huge=-5", ErrorCode::kCorrupt, "Content-Length"},
  };
  const RemoteServer server;
  server.put("file", random_bytes(kBytes));
  for (const Lie& lie : lies) {
    RemoteCache cache;
    cache.terms.connections = 2;
    cache.terms.attempts_max = lie.code == ErrorCode::kTimeout ? 2 : 3;
    const std::string fault = lie.fault;
    const auto file = cache.fetch(server.uri(fault + "/file"));
    CAPTURE(fault, file ? "no error" : file.error().message);
    REQUIRE(!file);
    CHECK(static_cast<int>(file.error().code) == static_cast<int>(lie.code));
    CHECK(file.error().message.find(lie.says) != std::string::npos);
    CHECK(server.struck(fault.substr(0, fault.find('='))) > 0);
    CHECK(!holds_whole_file(cache.folder()));
  }
}

TEST_CASE("A file that is compressed comes whatever the server calls that") {
  const RemoteServer server;
  server.put("file.gz", random_bytes(kBytes));
  RemoteCache cache;
  check_comes(cache, server.uri("encoded=x-gzip/file.gz"), random_bytes(kBytes));
  server.put("file", random_bytes(kBytes));
  check_comes(cache, server.uri("encoded=aws-chunked/file"), random_bytes(kBytes));
}

TEST_CASE("What a server sends behind the end of its answer is not taken for the next one") {
  const RemoteServer server;
  RemoteCache cache;
  server.put("file", random_bytes(kBytes));
  check_comes(cache, server.uri("toomuch/file"), random_bytes(kBytes));
  CHECK(server.struck("toomuch") >= 3);
}

TEST_CASE("Other bytes than the URI's digest promises are not kept") {
  const RemoteServer server;
  RemoteCache cache;
  server.put("file", random_bytes(kBytes));
  const auto file = cache.fetch(server.uri("other/file#sha256=" + std::string(64, 'a')));
  REQUIRE(!file);
  CHECK(file.error().code == ErrorCode::kCorrupt);
  CHECK(server.struck("other") >= 3);
  CHECK(!holds_whole_file(cache.folder()));
}

TEST_CASE("A server that is not there ends in an error that names the URI") {
  RemoteCache cache;
  const auto file = cache.fetch("http://127.0.0.1:1/file?secret=hidden");
  REQUIRE(!file);
  CHECK(file.error().code == ErrorCode::kUnavailable);
  CHECK(file.error().message.find("'http://127.0.0.1:1/file'") != std::string::npos);
  CHECK(file.error().message.find("hidden") == std::string::npos);
}

}  // namespace
}  // namespace speedo
