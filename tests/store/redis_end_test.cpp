// A program that ends while its server does not answer.

#include <future>

#include "store/store_under_test.hpp"

namespace speedo::test {
namespace {

// Without stop_waiting() the first operation alone would take longer than any test may.
RedisOptions endless(const RedisServer& server) {
  RedisOptions options = quick_options(server.tcp_uri());
  options.command_timeout = std::chrono::hours(1);
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

}  // namespace speedo::test
