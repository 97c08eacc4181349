// Passwords and users, with real servers.

#include "store/redis/redis_error.hpp"
#include "store/store_under_test.hpp"
#include "support/redis_ask.hpp"

namespace speedo::test {
namespace {

Result<std::shared_ptr<ParameterStore>> try_open(const std::string& uri) {
  return open_redis_store(quick_options(uri), "test");
}

}  // namespace

TEST_CASE("passwords and users of Redis", "[redis]") {
  RedisServer server(
      {"right", false, "user worker on >two ~speedo:* +@all\nuser free on nopass ~speedo:* +@all"});
  const std::string place = "127.0.0.1:" + std::to_string(server.port());
  for (const char* user_info : {":right@", "default:right@", "worker:two@", "free@", "free:any@"}) {
    CAPTURE(user_info);
    require(try_open("redis://" + std::string(user_info) + place));
  }
  for (const char* user_info : {"", ":wrong@", "worker:wrong@", "worker@", "nobody:wrong@"}) {
    CAPTURE(user_info);
    const auto store = try_open("redis://" + std::string(user_info) + place);
    REQUIRE(code_of(store) == ErrorCode::kRefused);
    REQUIRE_THAT(store.error().message, Catch::Contains("--redis-password-file") &&
                                            Catch::Contains(place) && !Catch::Contains("wrong"));
  }
}

TEST_CASE("a password that is changed while a store is open", "[redis]") {
  RedisServer server({"one", false, ""});
  const auto ask = [&](const std::string& words, const std::string& password) {
    return ask_redis(server.port(), words, password);
  };
  Secret now("one");
  bool is_readable = true;
  RedisOptions options = quick_options("127.0.0.1:" + std::to_string(server.port()));
  options.credentials.password = now;
  options.credentials.renew = [&]() -> Result<Secret> {
    if (!is_readable) return Error{ErrorCode::kNotFound, "it is being replaced"};
    return now;
  };
  const auto store = open(options);
  // The new one is there before the server knows it.
  now = Secret("two");
  REQUIRE(ask("CLIENT KILL TYPE normal", "one") != "0");
  require(store->put_blob("a", "1"));
  REQUIRE(ask("CONFIG SET requirepass two", "one") == "OK");
  REQUIRE(ask("CLIENT KILL TYPE normal", "two") != "0");
  require(store->put_blob("a", "2"));
  is_readable = false;
  REQUIRE(ask("CONFIG SET requirepass one", "two") == "OK");
  REQUIRE(ask("CLIENT KILL TYPE normal", "one") != "0");
  require(store->put_blob("a", "3"));
  now = Secret("wrong");
  is_readable = true;
  REQUIRE(ask("CONFIG SET requirepass other", "one") == "OK");
  REQUIRE(ask("CLIENT KILL TYPE normal", "other") != "0");
  CHECK(code_of(store->put_blob("a", "4")) == ErrorCode::kRefused);
}

TEST_CASE("a password of any bytes", "[redis]") {
  const std::string password = "sp ace\\t\xC3\xA4@:/%&'";
  RedisServer server({"", false, "requirepass \"sp ace\\\\t\xC3\xA4@:/%&'\""});
  RedisOptions options = quick_options("127.0.0.1:" + std::to_string(server.port()));
  options.credentials.password = Secret(password);
  require(open_redis_store(options, "test"));
  options.credentials.password = Secret(password + "x");
  REQUIRE(code_of(open_redis_store(options, "test")) == ErrorCode::kRefused);
}

TEST_CASE("a server without a password is told none", "[redis]") {
  RedisServer server;
  const std::string place = "127.0.0.1:" + std::to_string(server.port());
  const auto store = try_open("redis://:hush@" + place);
  REQUIRE(code_of(store) == ErrorCode::kRefused);
  REQUIRE_THAT(store.error().message, Catch::Contains("no password") && !Catch::Contains("hush"));
}

// Redis repeats the arguments of a command that it does not know.
TEST_CASE("an answer to AUTH that repeats the password is not shown", "[redis]") {
  RedisServer server({"", false, "rename-command AUTH \"\""});
  const std::string place = "127.0.0.1:" + std::to_string(server.port());
  for (const std::string& password : {std::string("hush"), "hush" + std::string(200, '-')}) {
    const auto store = try_open("redis://:" + password + "@" + place);
    REQUIRE(code_of(store) == ErrorCode::kRefused);
    REQUIRE_THAT(store.error().message, Catch::Contains(place) && !Catch::Contains("hush"));
  }
}

TEST_CASE("what an access control list forbids is named, with user and key", "[redis]") {
  RedisServer server({"", false, "user half on nopass ~speedo:* +@all -setex -scan -eval"});
  const auto store = try_open("redis://half@127.0.0.1:" + std::to_string(server.port()));
  require(store);
  const std::string key = contribution_key(1, 2);
  const auto put_record = put(**store, key, info_of(1, 4), pattern(4, 1));
  REQUIRE(code_of(put_record) == ErrorCode::kRefused);
  REQUIRE_THAT(put_record.error().message, Catch::Contains("forbids user 'half' setex") &&
                                        Catch::Contains("conf/redis-acl.conf"));
  const auto cleared = (*store)->clear();
  REQUIRE(code_of(cleared) == ErrorCode::kRefused);
  REQUIRE_THAT(cleared.error().message, Catch::Contains("forbids user 'half' scan"));
  const RedisAsking asking{"half", "SETEX", "speedo:{a}:x"};
  REQUIRE_THAT(redis_error("NOPERM this user has no permissions to access one of the keys used as "
                           "arguments", "h:1", asking).message,
               Catch::Contains("forbids user 'half' SETEX on the key 'speedo:{a}:x'"));
}

TEST_CASE("of keys that a user lacks no more are advised than its role needs", "[redis]") {
  const auto advice = [](std::string_view command, std::string_view key) {
    return redis_error(
               "NOPERM this user has no permissions to access one of the keys used as "
               "arguments",
               "h:1", {"u", command, key})
        .message;
  };
  REQUIRE_THAT(advice("SETEX", "speedo:{a}:worker/1/2"),
               Catch::Contains("ACL SETUSER u ~speedo:{*}:worker/* "));
  REQUIRE_THAT(advice("GETRANGE", "speedo:{a}:weights"),
               Catch::Contains("ACL SETUSER u %R~speedo:* "));
  REQUIRE_THAT(advice("SET", "speedo:{a}:weights"), Catch::Contains("ACL SETUSER u ~speedo:* "));
}

TEST_CASE("a connection that is made again authenticates again", "[redis]") {
  RedisServer server({"right", true, ""});
  const auto store = open(server.tcp_uri());
  require(store->put_blob("a", "1"));
  server.restart();
  const auto blob = store->get_blob("a");
  require(blob);
  REQUIRE(*blob == "1");
}

}  // namespace speedo::test
