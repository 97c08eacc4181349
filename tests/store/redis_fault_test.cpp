// What happens when the server dies, hangs, is full, refuses or is not there.

#include <atomic>
#include <chrono>
#include <thread>

#include "store/redis/redis_session.hpp"
#include "store/store_under_test.hpp"
#include "support/poll.hpp"

namespace speedo::test {
namespace {

using std::chrono::milliseconds;

// Whether one of many attempts succeeds.
template <class Attempt>
bool comes_about(Attempt attempt) {
  for (int i = 0; i < 100; ++i) {
    if (attempt()) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a store outlives a restart of its server with data", "[redis]") {
  RedisServer server({"", true, ""});
  const std::string uri = GENERATE(true, false) ? server.tcp_uri() : server.unix_uri();
  const auto store = open(uri);
  const auto values = pattern(kChunkElements + 9, 1);
  require(put(*store, "weights", info_of(1, values.size()), values));
  require(store->put_blob("job", "text"));
  server.restart();
  std::vector<float> target(values.size());
  require(get(*store, "weights", kModel, target));
  REQUIRE(target == values);
  require(store->get_blob("job"));
  server.restart();
  require(put(*store, "weights", info_of(2, values.size()), values));
  require(store->clear());
}

TEST_CASE("a store outlives a restart of its server without data", "[redis]") {
  RedisServer server;
  const auto store = open(server.tcp_uri());
  const auto values = pattern(kChunkElements + 9, 1);
  require(put(*store, "weights", info_of(1, values.size()), values));
  server.restart();
  std::vector<float> target(values.size());
  REQUIRE(code_of(get(*store, "weights", kModel, target)) == ErrorCode::kNotFound);
  require(put(*store, "weights", info_of(2, values.size()), values));
  require(get(*store, "weights", kModel, target));
  REQUIRE(target == values);
}

// Chunks that went to the server before it lost its memory go out again: a manifest never names a
// chunk that is not there.
TEST_CASE("a server killed in the middle of a put", "[redis]") {
  RedisServer server({"", GENERATE(false, true), ""});
  const auto store = open(patient(server.tcp_uri()));
  const std::size_t count = 6 * kChunkElements;
  const auto old_values = pattern(count, 1), values = pattern(count, 2);
  require(put(*store, "weights", info_of(1, count), old_values));
  auto writer = store->write("weights", info_of(2, count));
  const std::span<const float> all = values;
  for (std::size_t chunk = 0; chunk < 3; ++chunk) {
    writer->write(chunk, all.subspan(chunk * kChunkElements, kChunkElements));
  }
  if (GENERATE(false, true)) {
    poll_until(
        [&] { return has_key(quick_options(server.tcp_uri()), "speedo:{test}:weights:s1:c2"); });
  }
  server.kill();
  for (std::size_t chunk = 3; chunk < 6; ++chunk) {
    writer->write(chunk, all.subspan(chunk * kChunkElements, kChunkElements));
  }
  Result<void> done;
  std::thread finisher([&] { done = writer->finish(); });
  server.start();
  finisher.join();
  require(done);
  std::vector<float> target(count);
  require(get(*store, "weights", kModel, target));
  REQUIRE(target == values);
}

TEST_CASE("a server that stays away is a named error, and its return is noticed", "[redis]") {
  RedisServer server;
  const auto store = open(server.tcp_uri());
  const auto values = pattern(2 * kChunkElements, 1);
  require(put(*store, "weights", info_of(1, values.size()), values));
  server.kill();
  const auto done = put(*store, "weights", info_of(2, values.size()), values);
  REQUIRE(code_of(done) == ErrorCode::kUnavailable);
  REQUIRE_THAT(done.error().message, Catch::Contains(std::to_string(server.port())) &&
                                         Catch::Contains("start redis-server"));
  REQUIRE(code_of(store->read("weights")) == ErrorCode::kUnavailable);
  REQUIRE(code_of(store->clear()) == ErrorCode::kUnavailable);
  server.start();
  require(put(*store, "weights", info_of(3, values.size()), values));
}

TEST_CASE("a reader whose server dies ends with an error, not with a wrong value", "[redis]") {
  RedisServer server;
  const auto store = open(server.unix_uri());
  const auto values = pattern(4 * kChunkElements, 1);
  require(put(*store, "weights", info_of(1, values.size()), values));
  auto reader = store->read("weights");
  require(reader);
  std::vector<float> target(values.size());
  server.kill();
  for (std::size_t chunk = 0; chunk < 4; ++chunk) {
    (*reader)->request(chunk, std::span(target).subspan(chunk * kChunkElements, kChunkElements));
  }
  REQUIRE(code_of((*reader)->wait(2)) == ErrorCode::kUnavailable);
}

TEST_CASE("a hung server is kTimeout after the attempts that were allowed", "[redis]") {
  RedisServer server;
  RedisOptions options = quick_options(server.tcp_uri());
  options.attempts_max = 2;
  options.command_timeout = milliseconds(300);
  options.connect_timeout = milliseconds(200);
  // On a busy machine a server that runs may miss such limits, too.
  std::shared_ptr<ParameterStore> store;
  REQUIRE(comes_about([&] {
    const auto opened = open_redis_store(options, "test");
    if (opened) store = *opened;
    return opened.has_value();
  }));
  REQUIRE(comes_about([&] { return store->put_blob("job", "1").has_value(); }));
  server.pause();
  const auto done = store->put_blob("job", "2");
  REQUIRE(code_of(done) == ErrorCode::kTimeout);
  REQUIRE_THAT(done.error().message, Catch::Contains("(2 attempts)"));
  server.resume();
  REQUIRE(comes_about([&] { return store->put_blob("job", "3").has_value(); }));
  REQUIRE(*open(server.tcp_uri())->get_blob("job") == "3");
}

TEST_CASE("a connection that is made anew closes the old one on the server", "[redis]") {
  RedisServer server;
  const auto options = quick_options(server.tcp_uri());
  auto old = RedisSession::connect(options, std::nullopt);
  require(old);
  REQUIRE((*old)->client().has_value());
  const auto next = RedisSession::connect(options, (*old)->client());
  require(next);
  REQUIRE_FALSE((*old)->command({"PING"}));
  require((*next)->command({"PING"}));
}

// A restarted server counts its clients anew: the id of a connection to its earlier incarnation is
// somebody else's.
TEST_CASE("a connection to an earlier incarnation of the server costs nobody theirs", "[redis]") {
  const bool few_rights = GENERATE(false, true);
  RedisServer server({"", false, "user w on >p ~speedo:* +@read +@write +@connection"});
  auto options = quick_options(server.tcp_uri());
  if (few_rights) {
    options.credentials.user = "w";
    options.credentials.password = Secret("p");
  }
  std::vector<std::unique_ptr<RedisSession>> sessions;
  const auto connect = [&](const std::optional<RedisClient>& stale) {
    auto session = RedisSession::connect(options, stale);
    require(session);
    REQUIRE((*session)->client().has_value());
    sessions.push_back(std::move(*session));
    return sessions.back()->client();
  };
  std::optional<RedisClient> stale;
  // Beyond the ids that the restart itself takes.
  while (!stale || stale->id < 100) stale = connect(std::nullopt);
  server.restart();
  sessions.clear();
  while (sessions.empty() || sessions.back()->client()->id < stale->id) connect(std::nullopt);
  REQUIRE(sessions.back()->client()->id == stale->id);
  connect(stale);
  for (const auto& session : sessions) require(session->command({"PING"}));
}

TEST_CASE("connections cut by the server are made again", "[redis]") {
  RedisServer server;
  const auto store = open(patient(server.tcp_uri()));
  const auto values = pattern(3 * kChunkElements, 1);
  std::atomic<bool> done{false};
  std::thread killer([&] {
    while (!done) {
      command(server, {"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
      std::this_thread::sleep_for(milliseconds(5));
    }
  });
  bool good = true;
  std::vector<float> target(values.size());
  for (std::uint64_t version = 0; version < 30 && good; ++version) {
    good = put(*store, "weights", info_of(version, values.size()), values).has_value() &&
           get(*store, "weights", kModel, target).has_value() && target == values;
  }
  done = true;
  killer.join();
  REQUIRE(good);
}

TEST_CASE("a full server refuses the new record and keeps the old", "[redis]") {
  RedisServer server({"", false, "maxmemory 12mb"});
  const auto store = open(server.tcp_uri());
  const auto values = pattern(kChunkElements, 1), large = pattern(16 * kChunkElements, 2);
  require(put(*store, "weights", info_of(1, values.size()), values));
  const auto full = put(*store, "weights", info_of(2, large.size()), large);
  // There may be room again, so a job waits for that.
  REQUIRE(code_of(full) == ErrorCode::kUnavailable);
  REQUIRE_THAT(full.error().message, Catch::Contains("maxmemory"));
  std::vector<float> target(values.size());
  require(get(*store, "weights", kModel, target));
  REQUIRE(target == values);
  command(server, {"CONFIG", "SET", "maxmemory", "0"});
  require(put(*store, "weights", info_of(3, large.size()), large));
}

TEST_CASE("a server that evicts is refused", "[redis]") {
  RedisServer server({"", false, "maxmemory-policy allkeys-lru"});
  const auto store = open_redis_store(quick_options(server.tcp_uri()), "test");
  REQUIRE(code_of(store) == ErrorCode::kConfig);
  REQUIRE_THAT(store.error().message, Catch::Contains("noeviction"));
}

// Without +@admin and +info neither eviction nor the server's identity can be asked for.
TEST_CASE("a user with few rights", "[redis]") {
  RedisServer server({"", false, "user w on >p ~speedo:* +@read +@write +@connection"});
  const auto store = open("redis://w:p@127.0.0.1:" + std::to_string(server.port()));
  const auto values = pattern(2 * kChunkElements, 1);
  std::vector<float> target(values.size());
  for (std::uint64_t version = 0; version < 3; ++version) {
    require(put(*store, "weights", info_of(version, values.size()), values));
    command(server, {"CLIENT", "KILL", "TYPE", "normal"});
    require(get(*store, "weights", kModel, target));
  }
  RedisServer closed({"", false, "user w on >p ~other:* +@all"});
  const auto refused = open("redis://w:p@127.0.0.1:" + std::to_string(closed.port()));
  const auto done = put(*refused, "weights", info_of(1, values.size()), values);
  REQUIRE(code_of(done) == ErrorCode::kRefused);
}

TEST_CASE("a replica is not written to", "[redis]") {
  RedisServer primary;
  RedisServer replica({"", false, "replicaof 127.0.0.1 " + std::to_string(primary.port())});
  const auto store = open(replica.tcp_uri());
  const auto done = store->put_blob("job", "x");
  REQUIRE(code_of(done) == ErrorCode::kUnavailable);
  REQUIRE_THAT(done.error().message, Catch::Contains("READONLY") && Catch::Contains("primary"));
}

TEST_CASE("nobody there", "[redis]") {
  const ReservedPort reserved;
  const auto tcp = open_redis_store(quick_options(reserved.address()), "test");
  REQUIRE(code_of(tcp) == ErrorCode::kUnavailable);
  REQUIRE_THAT(tcp.error().message,
               Catch::Contains(reserved.address()) && Catch::Contains("start"));
  const auto unix = open_redis_store(quick_options("unix:///nowhere/redis.sock"), "test");
  REQUIRE(code_of(unix) == ErrorCode::kUnavailable);
  REQUIRE(code_of(open_redis_store(quick_options("127.0.0.1:1"), "a{b}")) == ErrorCode::kUsage);
}

TEST_CASE("a database that does not exist", "[redis]") {
  RedisServer server;
  require(open_redis_store(quick_options(server.tcp_uri() + "/3"), "test"));
  REQUIRE(code_of(open_redis_store(quick_options(server.tcp_uri() + "/99"), "test")) ==
          ErrorCode::kConfig);
}

TEST_CASE("jobs do not see each other, and clear takes only its own", "[redis]") {
  RedisServer server;
  const auto one = open(server.tcp_uri(), "one"), two = open(server.tcp_uri(), "two");
  require(one->put_blob("job", "1"));
  require(two->put_blob("job", "2"));
  require(one->clear());
  REQUIRE(code_of(one->get_blob("job")) == ErrorCode::kNotFound);
  REQUIRE(*two->get_blob("job") == "2");
}

TEST_CASE("contributions expire, weights do not", "[redis]") {
  RedisServer server;
  const auto store = open(server.tcp_uri());
  const auto values = pattern(10, 1);
  require(put(*store, weights_key(), info_of(1, 10), values));
  require(put(*store, contribution_key(7, 3), info_of(1, 10), values));
  const auto ttl = [&](const std::string& key) {
    return number_of(quick_options(server.tcp_uri()), "TTL", "speedo:{test}:" + key);
  };
  REQUIRE(ttl("weights:m") == -1);
  REQUIRE(ttl("weights:s0:c0") == -1);
  REQUIRE(ttl("worker/7/3:m") > 6 * 24 * 3600);
  REQUIRE(ttl("worker/7/3:s0:c0") > 6 * 24 * 3600);
}

}  // namespace speedo::test
