#include "local/stand_in_redis.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <unistd.h>

#include <speedo/store/redis_store.hpp>

#include "store/redis/redis_session.hpp"
#include "support/catch.hpp"
#include "support/child_processes.hpp"
#include "support/free_port.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

// What a master without --redis finds, to which `address` is the default.
Result<std::unique_ptr<PrivateRedis>> find_at(const std::string& address) {
  ClusterFlags flags = cluster_flags(OptionValues(Program::kMaster));
  flags.redis = address;
  return find_redis(flags, false, {});
}

// The one client that the server takes, once it has noticed that those before have gone.
std::unique_ptr<RedisSession> only_client(const RedisOptions& options) {
  while (true) {
    auto session = RedisSession::connect(options, std::nullopt);
    if (session) return std::move(*session);
  }
}

std::string local(int port) { return "127.0.0.1:" + std::to_string(port); }

TEST_CASE("A private Redis is started where none answers, and ends with its owner") {
  const test::ReservedPort silent;
  ClusterFlags flags = cluster_flags(OptionValues(Program::kMaster));
  flags.redis = silent.address();
  std::string uri;
  {
    const auto redis = find_redis(flags, false, {});
    INFO((redis ? "" : redis.error().message));
    REQUIRE(redis);
    REQUIRE(*redis != nullptr);
    uri = (*redis)->uri();
    CHECK(flags.redis == uri);
    const auto store = open_redis_store(parse_redis_uri(uri).value(), "job");
    REQUIRE(store);
    CHECK((*store)->put_blob("key", "value"));
  }
  RedisOptions once = parse_redis_uri(uri).value();
  once.attempts_max = 1;
  CHECK_FALSE(open_redis_store(once, "job"));
}

TEST_CASE("Where a Redis answers none is started, though it asks for a password") {
  test::RedisServer::Options options;
  options.password = "secret";
  const test::RedisServer server(options);
  const auto redis = find_at(local(server.port()));
  REQUIRE(redis);
  CHECK(*redis == nullptr);
}

TEST_CASE("Where a Redis is that has no room for another client none is started") {
  test::RedisServer::Options options;
  options.extra = "maxclients 1";
  const test::RedisServer server(options);
  RedisOptions once = parse_redis_uri(server.tcp_uri()).value();
  once.attempts_max = 1;
  const auto client = only_client(once);
  const auto opened = open_redis_store(once, "job");
  REQUIRE_FALSE(opened);
  REQUIRE(opened.error().message.find("max number of clients") != std::string::npos);
  const auto redis = find_at(local(server.port()));
  REQUIRE(redis);
  CHECK(*redis == nullptr);
}

TEST_CASE("A Redis that is loading its data, or whose script runs, is there") {
  test::RedisServer server;
  server.pause();  // accepts connections, as one that loads; answers nothing
  const auto redis = find_at(local(server.port()));
  server.resume();
  REQUIRE(redis);
  CHECK(*redis == nullptr);
}

TEST_CASE("Whoever means a Redis of their own gets no private one in its place") {
  ClusterFlags flags = cluster_flags(OptionValues(Program::kMaster));
  ProcessSecrets secrets;
  const test::ReservedPort silent;
  flags.redis = silent.address();
  const std::string address = flags.redis;
  std::string named;
  SECTION("to go on from it") {
    flags.resume = kResumeNewest;
    named = "--resume=auto";
  }
  SECTION("with a password in a file") {
    flags.redis_password_file = "redis.password";
    named = "--redis-password-file";
  }
  SECTION("with a password in the environment") {
    secrets.environment.password = Secret("secret");
    named = kPasswordVariable;
  }
  SECTION("as a user of it") {
    secrets.environment.user = "speedo";
    named = kUsernameVariable;
  }
  const auto redis = find_redis(flags, false, secrets);
  REQUIRE_FALSE(redis);
  CHECK(redis.error().code == ErrorCode::kUnavailable);
  CHECK(redis.error().message.find(address + ", and " + named) != std::string::npos);
  CHECK(redis.error().message.find("--redis.") != std::string::npos);
  CHECK(flags.redis == address);
}

TEST_CASE("A Redis that was named is left for the master to find or miss") {
  ClusterFlags flags = cluster_flags(OptionValues(Program::kMaster));
  const test::ReservedPort silent;
  flags.redis = silent.address();
  CHECK(find_redis(flags, true, {}).value() == nullptr);
  flags.resume = kResumeFromStore;
  CHECK(find_redis(flags, false, {}).value() == nullptr);
}

TEST_CASE("A private Redis that is kept up is started again at its place, and leaves nothing") {
  const auto redis = PrivateRedis::start();
  REQUIRE(redis);
  (*redis)->keep_up();
  const std::string uri = (*redis)->uri();
  const auto server = [] {
    const auto found = test::children_of(::getpid(), "redis-server");
    return found.empty() ? 0 : found.front();
  };
  for (int death = 0; death < 2; ++death) {
    const pid_t first = server();
    REQUIRE(first > 0);
    REQUIRE(open_redis_store(parse_redis_uri(uri).value(), "job"));
    ::kill(first, SIGKILL);
    bool again = false;
    for (int i = 0; i < 2000 && !again; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const pid_t now = server();
      RedisOptions once = parse_redis_uri(uri).value();
      once.attempts_max = 1;
      again = now != 0 && now != first && open_redis_store(once, "job").has_value();
    }
    REQUIRE(again);
  }
}

TEST_CASE("A redis-server that ends without a word is told apart from one that says why") {
  const TempDir folder;
  const std::filesystem::path server = folder / "redis-server";
  std::ofstream(server) << "#!/bin/sh\n$SAY\nexit 1\n";
  std::filesystem::permissions(server, std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (folder.path().string() + ":" + path).c_str(), 1);
  const auto silent = PrivateRedis::start();
  ::setenv("SAY", "echo no port", 1);
  const auto says = PrivateRedis::start();
  ::unsetenv("SAY");
  ::setenv("PATH", path.c_str(), 1);
  REQUIRE_FALSE(silent);
  CHECK(silent.error().message.find("did not start: it said nothing") != std::string::npos);
  REQUIRE_FALSE(says);
  CHECK(says.error().message.find("did not start: no port") != std::string::npos);
}

}  // namespace
}  // namespace speedo
