// Servers that Sentinels watch: who the primary is, and who it is after a failover.

#include <string>

#include "store/store_under_test.hpp"
#include "support/redis_sentinel.hpp"

namespace speedo::test {
namespace {

constexpr std::chrono::milliseconds kLook{20};
// In which Sentinels are asked at least once.
constexpr std::chrono::milliseconds kSomeRounds{3000};

RedisOptions watched(const std::string& address) {
  RedisOptions options = patient(address);
  options.command_timeout = std::chrono::milliseconds(500);
  return options;
}

// The version of the weights on this server alone; 0: it has none.
std::uint64_t version_at(const RedisServer& server) {
  const std::string address = "127.0.0.1:" + std::to_string(server.port());
  const auto reader = open(patient(address))->read(weights_key());
  return reader ? (*reader)->info().version : 0;
}

// A failover by order, to a server of this policy: until Sentinels demote the old primary, it goes
// on as one.
void fail_over(RedisSentinelGroup& group, const std::string& policy = "noeviction") {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (version_at(group.replica()) == 0) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
    std::this_thread::sleep_for(kLook);
  }
  REQUIRE(ask_redis(group.replica().port(), "CONFIG SET maxmemory-policy " + policy) == "OK");
  REQUIRE(ask_redis(group.port(), "SENTINEL FAILOVER shelf") == "OK");
}

bool is_primary(const RedisServer& server) {
  return ask_redis(server.port(), "ROLE").starts_with("master");
}

// Whether what is put goes to the replica after a failover, while the old primary is one still.
bool leaves_primary(RedisSentinelGroup& group, ParameterStore& store) {
  std::uint64_t version = 1;
  bool has_left = false;
  while (!has_left && is_primary(group.primary())) {
    version += 1;
    // Until then the replica follows what is written.
    const bool is_promoted = is_primary(group.replica());
    require(put(store, weights_key(), info_of(version, 100000), pattern(100000, version)));
    has_left = is_promoted && version_at(group.replica()) == version;
    std::this_thread::sleep_for(kLook);
  }
  return has_left;
}

}  // namespace

TEST_CASE("addresses of Sentinels", "[redis]") {
  const auto one = parse_redis_addresses("redis-sentinel://me@one,[::1]:7,two:26380/shelf.1");
  require(one);
  REQUIRE(one->size() == 1);
  const RedisAddress& address = one->front();
  CHECK(address.primary == "shelf.1");
  REQUIRE(address.sentinels.size() == 3);
  CHECK(address.sentinels[0].port == 26379);
  CHECK(address.sentinels[1].host == "::1");
  const std::string text = "redis-sentinel://one:26379,[::1]:7,two:26380/shelf.1";
  CHECK(to_string(*one) == text);
  CHECK(to_string(parse_redis_addresses(text).value()) == text);
  CHECK(parse_redis_address("rediss-sentinel://one/a")->is_tls);
  CHECK(StoreAddress(text).text() == text);
  for (const char* wrong : {"redis-sentinel://", "redis-sentinel://one", "redis-sentinel://one/",
                            "redis-sentinel:///a", "redis-sentinel://one,/a",
                            "redis-sentinel://one:x/a", "redis-sentinel://one/a/b",
                            "redis-sentinel://one/a,two", "one,redis-sentinel://two/a"}) {
    CAPTURE(wrong);
    CHECK(code_of(parse_redis_addresses(wrong)) == ErrorCode::kUsage);
  }
}

TEST_CASE("the store is on the primary that a Sentinel names, before and after failovers",
          "[redis]") {
  RedisSentinelGroup group;
  const std::string sentinel = "127.0.0.1:" + std::to_string(group.port());
  const ReservedPort nobody;
  const auto store = open(watched("redis-sentinel://" + nobody.address() + "," + sentinel + "/" +
                                  RedisSentinelGroup::kWatched));
  require(put(*store, weights_key(), info_of(1, 100000), pattern(100000, 1)));
  CHECK(ask_redis(group.primary().port(), "DBSIZE") != "0");

  // What is written before the old primary knows that it is a replica is lost.
  const int before = group.primary_port();
  REQUIRE(ask_redis(group.port(), "SENTINEL FAILOVER shelf") == "OK");
  while (group.primary_port() == before || !ask_redis(before, "ROLE").starts_with("slave")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  require(put(*store, weights_key(), info_of(2, 100000), pattern(100000, 2)));
  std::vector<float> read(100000);
  require(get(*store, weights_key(), kModel, read));
  CHECK((read == pattern(100000, 2)));
  const std::string role = ask_redis(group.replica().port(), "ROLE");
  CHECK(role.starts_with("master"));

  const auto another = open(watched(group.address()));
  require(get(*another, weights_key(), kModel, read));
  CHECK((read == pattern(100000, 2)));
}

TEST_CASE("a primary that was replaced by order is left before it is demoted", "[redis]") {
  RedisSentinelGroup group;
  const ReservedPort nobody;
  const auto store = open(watched("redis-sentinel://" + nobody.address() + ",127.0.0.1:" +
                                  std::to_string(group.port()) + "/shelf"));
  require(put(*store, weights_key(), info_of(1, 100000), pattern(100000, 1)));
  fail_over(group);
  CHECK(leaves_primary(group, *store));
}

// They count failovers from zero.
TEST_CASE("Sentinels that were made anew are followed", "[redis]") {
  RedisSentinelGroup group({.sentinel = "sentinel config-epoch shelf 5\n"});
  const auto store = open(watched(group.address()));
  require(put(*store, weights_key(), info_of(1, 100000), pattern(100000, 1)));
  std::this_thread::sleep_for(kSomeRounds);
  group.renew_sentinel();
  fail_over(group);
  CHECK(leaves_primary(group, *store));
}

TEST_CASE("a Sentinel that missed the latest failover is not believed", "[redis]") {
  RedisSentinelGroup group({.sentinel = "sentinel config-epoch shelf 5\n"});
  RedisSentinelGroup behind;
  const auto store = open(watched("redis-sentinel://127.0.0.1:" + std::to_string(group.port()) +
                                  ",127.0.0.1:" + std::to_string(behind.port()) + "/shelf"));
  require(put(*store, weights_key(), info_of(1, 100000), pattern(100000, 1)));
  std::this_thread::sleep_for(kSomeRounds);
  group.end_sentinel();
  ask_redis(group.primary().port(), "CLIENT KILL TYPE normal");
  require(put(*store, weights_key(), info_of(2, 100000), pattern(100000, 2)));
  CHECK(version_at(group.primary()) == 2);
  CHECK(version_at(behind.primary()) == 0);
}

TEST_CASE("a promoted server that throws data away is waited for, and named", "[redis]") {
  RedisSentinelGroup group;
  RedisOptions options = watched(group.address());
  options.attempts_max = 20;
  const auto store = open(options);
  std::uint64_t version = 1;
  const auto put_next = [&] {
    version += 1;
    return put(*store, weights_key(), info_of(version, 100000), pattern(100000, version));
  };
  require(put_next());
  std::this_thread::sleep_for(kSomeRounds);
  fail_over(group, "allkeys-lru");
  const std::string wanted = "maxmemory-policy allkeys-lru";
  Result<void> last = put_next();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (last || last.error().message.find(wanted) == std::string::npos) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
    last = put_next();
  }
  CHECK(last.error().code == ErrorCode::kUnavailable);
  REQUIRE(ask_redis(group.replica().port(), "CONFIG SET maxmemory-policy noeviction") == "OK");
  while (!put_next()) REQUIRE(std::chrono::steady_clock::now() < deadline);
  CHECK(version_at(group.replica()) == version);
}

TEST_CASE("what is written at the end goes to the new primary", "[redis]") {
  RedisSentinelGroup group;
  const auto store = open(watched(group.address()));
  require(put(*store, weights_key(), info_of(1, 100000), pattern(100000, 1)));
  // The Sentinel may not have begun: it is waited for.
  fail_over(group);
  store->stop_waiting();
  require(put(*store, weights_key(), info_of(2, 100000), pattern(100000, 2)));
  REQUIRE(is_primary(group.primary()));
  CHECK(is_primary(group.replica()));
  CHECK(version_at(group.replica()) == 2);
}

TEST_CASE("a primary stays in use while all Sentinels are away, at the end too", "[redis]") {
  RedisSentinelGroup group;
  const auto store = open(watched(group.address()));
  group.end_sentinel();
  require(put(*store, weights_key(), info_of(1, 100000), pattern(100000, 1)));
  store->stop_waiting();
  require(put(*store, weights_key(), info_of(2, 100000), pattern(100000, 2)));
  CHECK(version_at(group.primary()) == 2);
}

TEST_CASE("Sentinels that know no such primary, or are away", "[redis]") {
  RedisSentinelGroup group;
  const std::string sentinel = "redis-sentinel://127.0.0.1:" + std::to_string(group.port());
  const auto unknown = open_redis_store(quick_options(sentinel + "/other"), "test");
  REQUIRE(code_of(unknown) == ErrorCode::kConfig);
  CHECK_THAT(unknown.error().message, Catch::Contains("'other'"));
  const ReservedPort nobody;
  RedisOptions options = quick_options("redis-sentinel://" + nobody.address() + "/shelf");
  options.attempts_max = 2;
  CHECK(code_of(open_redis_store(options, "test")) == ErrorCode::kUnavailable);
  // One that is away does not hide what another says, whichever is asked first.
  for (const std::string& both :
       {nobody.address() + ",127.0.0.1:" + std::to_string(group.port()),
        "127.0.0.1:" + std::to_string(group.port()) + "," + nobody.address()}) {
    CAPTURE(both);
    RedisOptions named = quick_options("redis-sentinel://" + both + "/other");
    named.attempts_max = 2;
    const auto other = open_redis_store(named, "test");
    CHECK(code_of(other) == ErrorCode::kConfig);
    CHECK_THAT(other.error().message, Catch::Contains("watches no primary named 'other'"));
  }
  const auto away = open_redis_store(options, "test");
  CHECK_THAT(away.error().message, Catch::StartsWith("Sentinel at " + nobody.address()));
  // A server that is no Sentinel.
  const auto server = open_redis_store(
      quick_options("redis-sentinel://127.0.0.1:" + std::to_string(group.primary().port()) +
                    "/shelf"),
      "test");
  CHECK_FALSE(server.has_value());
}

TEST_CASE("a primary that is away is said to be, and not a Sentinel", "[redis]") {
  RedisSentinelGroup group({.servers = "replica-priority 0\n"});
  const ReservedPort nobody;
  group.primary().kill();
  const std::string sentinel = "127.0.0.1:" + std::to_string(group.port());
  RedisOptions options =
      quick_options("redis-sentinel://" + nobody.address() + "," + sentinel + "/shelf");
  options.attempts_max = 2;
  const auto away = open_redis_store(options, "test");
  REQUIRE(code_of(away) == ErrorCode::kUnavailable);
  CHECK_THAT(away.error().message,
             Catch::StartsWith("the primary that the Sentinel at " + sentinel + " names") &&
                 Catch::Contains(std::to_string(group.primary().port())));
}

}  // namespace speedo::test
