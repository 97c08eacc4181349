// A program that ends while its server does not answer.

#include <future>

#include "store/redis/redis_connection.hpp"
#include "store/store_under_test.hpp"
#include "support/slow_look_up.hpp"

namespace speedo::test {
namespace {

// Without stop_waiting() the first operation alone would take longer than any test may.
RedisOptions endless(const RedisServer& server) {
  RedisOptions options = quick_options(server.tcp_uri());
  options.command_timeout = std::chrono::hours(1);
  return options;
}

// An attempt to reach a frozen server lasts as long as the patience at the end.
RedisOptions equally_patient(RedisOptions options) {
  options.connect_timeout = options.command_timeout;
  return options;
}

}  // namespace

TEST_CASE("a program that ends gives up a frozen server, for good", "[redis]") {
  RedisServer server;
  const auto store = open(endless(server));
  require(store->put_blob("job", "text"));
  server.pause();
  auto waiting = std::async(std::launch::async, [&] { return store->get_blob("job"); });
  store->stop_waiting();
  const auto given_up = waiting.get();
  REQUIRE_FALSE(given_up);
  REQUIRE(is_transient(given_up.error().code));
  REQUIRE_FALSE(store->put_blob("job", "more"));
  server.resume();
  REQUIRE_FALSE(store->get_blob("job"));
  require(open(server.tcp_uri())->get_blob("job"));
}

TEST_CASE("a program that ends goes on using a server that answers", "[redis]") {
  RedisServer server({"", true, ""});
  const auto store = open(endless(server));
  store->stop_waiting();
  require(store->put_blob("job", "text"));
  server.restart();  // a moment's absence is no reason to give up
  REQUIRE(*store->get_blob("job") == "text");
}

TEST_CASE("a program that ends lists the keys of a frozen server in one attempt", "[redis]") {
  RedisServer server;
  const auto map = RedisKeyValue::open(equally_patient(quick_options(server.tcp_uri())));
  require(map);
  (*map)->stop_waiting();
  require((*map)->list("speedo:"));
  server.pause();
  const auto listed = (*map)->list("speedo:");
  server.resume();
  REQUIRE_FALSE(listed);
  CHECK(is_transient(listed.error().code));
  CHECK_THAT(listed.error().message, !Catch::Contains("attempts"));
}

TEST_CASE("a program that ends lists the keys of a frozen cluster in one attempt",
          "[redis][cluster]") {
  RedisCluster& nodes = common_cluster();
  std::vector<RedisOptions> options = cluster_options(nodes.address());
  for (RedisOptions& each : options) each = equally_patient(each);
  const auto map = ClusterKeyValue::open(options);
  require(map);
  (*map)->stop_waiting();
  require((*map)->list("speedo:"));
  nodes.node(1).pause();
  const auto listed = (*map)->list("speedo:");
  nodes.node(1).resume();
  nodes.wait_until_ok();
  REQUIRE_FALSE(listed);
  CHECK(is_transient(listed.error().code));
  CHECK_THAT(listed.error().message, !Catch::Contains("attempts"));
}

TEST_CASE("a program that ends waits for no name of a server", "[redis]") {
  RedisOptions options = quick_options("redis://somewhere.invalid");
  options.command_timeout = std::chrono::milliseconds(1);  // of patience at the end
  options.connect_timeout = std::chrono::hours(1);
  SlowLookUp slow;
  auto operation = std::make_shared<KvOperation>();
  operation->key = "key";
  {
    RedisConnection connection(options, nullptr, std::make_shared<std::atomic<std::uint64_t>>(0),
                               {.look_up = slow.function()});
    connection.submit(operation);
    slow.asked.get_future().get();
    connection.stop_waiting();
    operation->wait();
  }
  REQUIRE(operation->error);
  REQUIRE(operation->error->code == ErrorCode::kUnavailable);
  REQUIRE_THAT(operation->error->message, Catch::Contains("somewhere.invalid"));
  slow.answer.set_value();
  slow.forgotten.get_future().get();
}

TEST_CASE("a name is not waited for longer than a connection", "[redis]") {
  RedisOptions options = quick_options("redis://somewhere.invalid");
  options.connect_timeout = std::chrono::milliseconds(1);
  SlowLookUp slow;
  const auto session = RedisSession::connect(
      options, std::nullopt, {.look_up = slow.function(), .stop = [] { return false; }});
  REQUIRE_FALSE(session);
  REQUIRE(session.error().code == ErrorCode::kUnavailable);
  slow.answer.set_value();
  slow.forgotten.get_future().get();
}

TEST_CASE("a server is found by its name", "[redis]") {
  RedisServer server;
  require(RedisSession::connect(quick_options("redis://localhost:" + std::to_string(server.port())),
                                std::nullopt));
}

}  // namespace speedo::test
