// speedo jobs: what jobs have in Redis, and how it goes.

#include <csignal>

#include "main/command_support.hpp"
#include "support/redis_ask.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_server.hpp"

namespace speedo::test {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

Words listing(const std::string& redis, const Words& flags) {
  Words command{"speedo", "jobs", "--redis", redis};
  command.insert(command.end(), flags.begin(), flags.end());
  return command;
}

// A master of a job whose workers do not compute.
Words training(Context& place, const std::string& redis, const std::string& job) {
  return {"speedo-master", "--solver", place.write_solver("max_iter: 30"), "--workers", "1",
          "--redis", redis, "--job", job};
}

Words worker_of(Process& master) {
  REQUIRE(master.says("Add workers with: "));
  const std::string log = master.errors(), line = "speedo-worker --master ";
  const std::size_t begin = log.find(line) + line.size();
  return {"speedo-worker", "--master", log.substr(begin, log.find('\n', begin) - begin)};
}

void train(Context& place, const std::string& redis, const std::string& job) {
  Process master = place.start(training(place, redis, job));
  CHECK(place.run(worker_of(master)).exit_code == 0);
  CHECK(Context::finish(master).exit_code == 0);
}

json job_named(Context& place, const std::string& redis, const std::string& name) {
  const json listed = place.run(listing(redis, {"--json"})).json()["jobs"];
  for (const json& job : listed) {
    if (job["job"] == name) return job;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("speedo jobs lists what a Redis has of jobs, and removes one of them alone") {
  Context place;
  RedisServer redis;
  const std::string address = redis.tcp_uri();
  CHECK(place.run(listing(address, {"--json"})).json()["jobs"].empty());
  train(place, address, "one");
  train(place, address, "one.more");
  ask_redis(redis.port(), "SET other {one}:x");
  ask_redis(redis.port(), "SET 'speedo:{a*b}:x' of.another.program");
  const json one = job_named(place, address, "one");
  CHECK(one["state"] == "over");
  CHECK(one["iteration"] == 30);
  // Each parameter begins on a line of the cache.
  CHECK(one["stored_bytes"].get<int>() >= 4 * (12 * 16 + 16 + 16 * 4 + 4));
  CHECK(one["keys"].get<int>() > 2);
  const Outcome table = place.run(listing(address, {}));
  CHECK(table.output.find("one.more") != std::string::npos);
  CHECK(table.output.find("STORED") != std::string::npos);

  const Outcome none = place.run(listing(address, {"--remove", "on"}));
  CHECK(none.exit_code == 65);
  CHECK(none.error_line().find("one, one.more") != std::string::npos);
  // As of a shell's variable that is empty.
  CHECK(place.run(listing(address, {"--remove", ""})).exit_code == 2);
  CHECK(place.run(listing(address, {"--remove="})).exit_code == 2);
  CHECK(place.run(listing(address, {"--remove", "one"})).exit_code == 0);
  CHECK(job_named(place, address, "one").is_null());
  CHECK(job_named(place, address, "one.more")["iteration"] == 30);
  CHECK(ask_redis(redis.port(), "KEYS *{one}*") == "speedo:{one}/term");
  CHECK(ask_redis(redis.port(), "GET other") == "{one}:x");
  train(place, address, "one");

  // Of a type that SpeeDO's keys never are.
  ask_redis(redis.port(), "UNLINK speedo:{one}:weights:m");
  ask_redis(redis.port(), "LPUSH speedo:{one}:weights:m x");
  const std::string fault = job_named(place, address, "one")["error"];
  CHECK(fault.find("remove the key") != std::string::npos);
  CHECK(place.run(listing(address, {"--remove", "one"})).exit_code == 0);
  CHECK(job_named(place, address, "one").is_null());
}

TEST_CASE("speedo jobs removes no job that has a master, but one whose master died") {
  Context place;
  RedisServer redis;
  Process master = place.start(training(place, redis.tcp_uri(), "held"));
  worker_of(master);
  CHECK(job_named(place, redis.tcp_uri(), "held")["state"] == "running");
  const Outcome refused = place.run(listing(redis.tcp_uri(), {"--remove", "held"}));
  CHECK(refused.exit_code == 75);
  CHECK(refused.error_line().find("the job 'held': stop it first") != std::string::npos);
  CHECK(job_named(place, redis.tcp_uri(), "held")["iteration"] == 0);
  master.signal(SIGKILL);
  CHECK(master.wait());
  CHECK(place.run(listing(redis.tcp_uri(), {"--remove", "held"})).exit_code == 0);
  CHECK(job_named(place, redis.tcp_uri(), "held").is_null());
}

TEST_CASE("speedo jobs wants all servers of a job, before it removes anything") {
  Context place;
  RedisServer first, second;
  const std::string both = first.tcp_uri() + "," + second.tcp_uri();
  train(place, both, "two");
  const Outcome half = place.run(listing(first.tcp_uri(), {"--remove", "two"}));
  CHECK(half.exit_code == 78);
  CHECK(half.error_line().find("2 servers") != std::string::npos);
  CHECK(job_named(place, first.tcp_uri(), "two")["error"].get<std::string>().find("2 servers") !=
        std::string::npos);
  const Outcome other = place.run(listing(second.tcp_uri() + "," + first.tcp_uri(),
                                          {"--remove", "two"}));
  CHECK(other.exit_code == 78);
  CHECK(job_named(place, both, "two")["iteration"] == 30);
  CHECK(place.run(listing(both, {"--remove", "two"})).exit_code == 0);
  CHECK(job_named(place, both, "two").is_null());
}

TEST_CASE("speedo jobs finds and removes what a job has on a Redis Cluster") {
  Context place;
  const RedisCluster cluster;
  train(place, cluster.address(), "spread");
  CHECK(job_named(place, cluster.address(), "spread")["iteration"] == 30);
  CHECK(place.run(listing(cluster.address(), {"--remove", "spread"})).exit_code == 0);
  CHECK(job_named(place, cluster.address(), "spread").is_null());
}

}  // namespace speedo::test
