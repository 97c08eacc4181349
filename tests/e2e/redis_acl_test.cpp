// The users of conf/redis-acl.conf: a job trains as them, and they may do nothing else.

#include <signal.h>
#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "support/catch.hpp"

#include "cluster.hpp"
#include "support/redis_sentinel.hpp"

namespace speedo {
namespace {

using test::Cluster;
using test::Process;

constexpr const char* kMasterPassword = "master's-own";
constexpr const char* kWorkerPassword = "worker's-own";
constexpr const char* kReplicaPassword = "replica's-own";
constexpr const char* kSentinelPassword = "sentinel's-own";
constexpr const char* kTester = "user tester on >look ~* &* +@all\n";

// The file's lines, with passwords instead of the places for their hashes; `without`: a permission
// that is taken away.
std::string users(const std::string& without = {}) {
  std::ifstream file("conf/redis-acl.conf");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto put = [&](const std::string& place, const std::string& value) {
    const std::size_t at = text.find(place);
    REQUIRE(at != std::string::npos);
    text.replace(at, place.size(), value);
  };
  put("#MASTER_SHA256", std::string("\">") + kMasterPassword + "\"");
  put("#WORKER_SHA256", std::string("\">") + kWorkerPassword + "\"");
  put("#REPLICA_SHA256", std::string("\">") + kReplicaPassword + "\"");
  put("#SENTINEL_SHA256", std::string("\">") + kSentinelPassword + "\"");
  if (!without.empty()) put(" " + without, "");
  return text;
}

Cluster::Options on_users(const std::string& without = {}) {
  Cluster::Options options;
  options.user = "tester";
  options.password = "look";
  options.redis_lines = users(without) + kTester;
  options.user_info = "speedo-master@";
  return options;
}

std::vector<std::string> password_file(const Cluster& cluster, const char* password) {
  const std::string file = cluster.file(password).string();
  std::ofstream(file) << password << "\n";
  ::chmod(file.c_str(), 0600);
  return {"--redis-password-file", file};
}

Process& start_worker(Cluster& cluster, const std::string& master) {
  return cluster.start_worker(master, password_file(cluster, kWorkerPassword),
                              {"SPEEDO_REDIS_USERNAME=speedo-worker"});
}

// What a server answers to a command of one of its users.
std::string answer(int port, const std::string& user, const std::string& password,
                   const std::string& words) {
  const std::string login = " --no-auth-warning --user " + user + " -a \"" + password + "\" ";
  const std::string command = "redis-cli -p " + std::to_string(port) + login + words + " 2>&1";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  REQUIRE(pipe);
  std::string text;
  std::array<char, 512> part{};
  while (std::fgets(part.data(), part.size(), pipe.get()) != nullptr) text += part.data();
  return text;
}

}  // namespace

TEST_CASE("a job trains as the users of conf/redis-acl.conf, and needs no more than they may") {
  constexpr std::uint64_t kIterations = 600;
  Cluster cluster(kIterations, on_users());
  Process& master =
      cluster.start_master(test::joined({"--workers", "2", "--sync"},
                                        password_file(cluster, kMasterPassword)));
  const std::string address = cluster.address();
  start_worker(cluster, address);
  start_worker(cluster, address);
  REQUIRE(cluster.counts_beyond(50));
  cluster.workers().front().signal(SIGKILL);
  start_worker(cluster, address);
  test::require_ending(cluster, master, {kIterations, 3, 0});
  CHECK(cluster.worker_keys() == 0);
  CHECK(answer(cluster.redis().port(), "tester", "look", "ACL LOG") == "\n");
}

TEST_CASE("what merges a part is a user as the master is") {
  constexpr std::uint64_t kIterations = 100;
  Cluster::Options options = on_users();
  options.servers = 2;
  options.rows = 8192;
  Cluster cluster(kIterations, options);
  const auto as_master = password_file(cluster, kMasterPassword);
  Process& master =
      cluster.start_master(test::joined({"--workers", "1", "--shards", "2"}, as_master));
  const std::string address = cluster.address();
  cluster.start_worker(address, test::joined({"--shard=1"}, as_master),
                       {"SPEEDO_REDIS_USERNAME=speedo-master"});
  REQUIRE(master.says(" is merged by "));
  start_worker(cluster, address);
  test::require_ending(cluster, master, {kIterations, 1, 0});
  for (const std::size_t server : {0U, 1U}) {
    CHECK(answer(cluster.redis(server).port(), "tester", "look", "ACL LOG") == "\n");
  }
}

TEST_CASE("replica and Sentinel are users too, before and after a failover, of a job's primary") {
  constexpr std::uint64_t kIterations = 400;
  const std::string watched = test::RedisSentinelGroup::kWatched;
  test::RedisSentinelGroup group(
      {.servers = users() + kTester + "masteruser speedo-replica\nmasterauth \"" +
                  kReplicaPassword + "\"\n",
       .sentinel = "sentinel auth-user " + watched + " speedo-sentinel\nsentinel auth-pass " +
                   watched + " \"" + kSentinelPassword + "\"\n"});
  Cluster::Options options;
  options.user = "tester";
  options.password = "look";
  options.redis = "redis-sentinel://speedo-master@127.0.0.1:" + std::to_string(group.port()) +
                  "/" + watched;
  Cluster cluster(kIterations, options);
  Process& master = cluster.start_master(
      test::joined({"--workers", "1"}, password_file(cluster, kMasterPassword)));
  start_worker(cluster, cluster.address());
  REQUIRE(cluster.counts_beyond(50));
  group.primary().kill();
  test::require_ending(cluster, master, {kIterations, 1, 0});
  const int promoted = group.replica().port();
  CHECK(group.primary_port() == promoted);

  // The old primary follows the new one when it is back, as the Sentinel tells it.
  group.primary().start();
  const auto role = [&] {
    return answer(group.primary().port(), "tester", "look", "ROLE");
  };
  for (int i = 0; i < 1000 && role().find("\nconnected\n") == std::string::npos; ++i) {
    test::sleep_ms(20);
  }
  CHECK_THAT(role(), Catch::StartsWith("slave") && Catch::Contains("\nconnected\n"));
  // A worker that connects anew asks in vain for the list of clients, which is not for it.
  for (const int port : {promoted, group.primary().port()}) {
    CHECK_THAT(answer(port, "tester", "look", "ACL LOG"),
               !Catch::Contains("speedo-replica") && !Catch::Contains("speedo-sentinel") &&
                   !Catch::Contains("speedo-master"));
  }
}

TEST_CASE("the users of conf/redis-acl.conf may not do what their role has no use for") {
  test::RedisServer server({.extra = users() + kTester});
  for (const char* words :
       {"FLUSHALL", "FLUSHDB", "CONFIG GET maxmemory", "CONFIG SET maxmemory 1", "\"KEYS\" \"*\"",
        "ACL LIST", "SHUTDOWN", "REPLICAOF NO ONE", "SWAPDB 0 1", "MONITOR", "GET other",
        "SET other 1", "SCRIPT FLUSH", "PUBLISH a b", "EVAL \"return redis.call('KEYS','*')\" 0"}) {
    CAPTURE(words);
    CHECK_THAT(answer(server.port(), "speedo-master", kMasterPassword, words),
               Catch::Contains("NOPERM") || Catch::Contains("can't run this command"));
    CHECK_THAT(answer(server.port(), "speedo-worker", kWorkerPassword, words),
               Catch::Contains("NOPERM"));
  }
  for (const char* words :
       {"SETEX 'speedo:{job}:weights:m' 9 x", "SETEX 'speedo:{job}/term' 9 x",
        "SETEX 'speedo:{job}:master/1/step:m' 9 x", "UNLINK 'speedo:{job}:master/1/seat/0:m'",
        "UNLINK 'speedo:{job}:weights:m'", "UNLINK 'speedo:{job}/lease'", "SCAN 0",
        "EVAL 'return 1' 0", "CLIENT LIST", "CLIENT KILL ID 1"}) {
    CAPTURE(words);
    CHECK_THAT(answer(server.port(), "speedo-worker", kWorkerPassword, words),
               Catch::Contains("NOPERM"));
    CHECK_THAT(answer(server.port(), "speedo-master", kMasterPassword, words),
               !Catch::Contains("NOPERM"));
  }
  CHECK_THAT(answer(server.port(), "speedo-worker", kWorkerPassword,
                    "SETEX 'speedo:{job}:worker/1/2:m' 9 x"),
             Catch::Contains("OK"));
  for (const char* words :
       {"FLUSHALL", "CONFIG GET maxmemory", "CONFIG SET maxmemory 1", "ACL LIST", "SHUTDOWN",
        "GET 'speedo:{job}/lease'", "SET 'speedo:{job}/lease' 1", "SCAN 0", "MONITOR",
        "PUBLISH a b", "EVAL 'return 1' 0", "SUBSCRIBE a"}) {
    CAPTURE(words);
    CHECK_THAT(answer(server.port(), "speedo-replica", kReplicaPassword, words),
               Catch::Contains("NOPERM"));
    CHECK_THAT(answer(server.port(), "speedo-sentinel", kSentinelPassword, words),
               Catch::Contains("NOPERM"));
  }
  CHECK_THAT(answer(server.port(), "default", "", "PING"), !Catch::Contains("PONG"));
}

TEST_CASE("a command that the user may not use is named, with the user") {
  struct Case {
    const char* taken;
    const char* command;
  };
  for (const Case& each : {Case{"+eval", "ACL SETUSER speedo-master +eval"},
                          Case{"+set", "a command of a master's script (EVAL)"}}) {
    CAPTURE(each.taken);
    Cluster cluster(10, on_users(each.taken));
    Process& master =
        cluster.start_master(test::joined({"--workers", "1"},
                                          password_file(cluster, kMasterPassword)));
    CHECK(master.wait() == 77);
    CHECK_THAT(master.errors(), Catch::Contains(each.command) &&
                                    Catch::Contains("forbids user 'speedo-master'") &&
                                    Catch::Contains("conf/redis-acl.conf"));
  }
}

}  // namespace speedo
