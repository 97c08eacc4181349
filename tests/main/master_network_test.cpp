// Where a master listens, what it announces, and that the announced worker line works.

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include <speedo/store/redis_store.hpp>

#include "actors/reachable_address.hpp"
#include "main/command_support.hpp"
#include "support/child_processes.hpp"
#include "support/redis_server.hpp"
#include "support/skip.hpp"

namespace speedo::test {
namespace {

using Words = std::vector<std::string>;

struct Training {
  std::string address;  // as announced
  std::string log;      // the master's
};

// What the master tells workers to connect to, once it does.
std::string announced_address(Process& master) {
  REQUIRE(master.says("Add workers with: "));
  const std::string log = master.errors(), line = "speedo-worker --master ";
  const std::size_t begin = log.find(line) + line.size();
  return log.substr(begin, log.find('\n', begin) - begin);
}

// A job that is trained by one worker, which is given what the master announced.
Training train(const Words& flags) {
  Context place;
  RedisServer redis;
  Words command{"speedo-master", "--solver", place.write_solver(), "--redis", redis.tcp_uri()};
  command.insert(command.end(), flags.begin(), flags.end());
  Process master = place.start(command);
  Training training{announced_address(master), ""};
  const Outcome worker = place.run({"speedo-worker", "--master", training.address});
  INFO(worker.errors);
  CHECK(worker.exit_code == 0);
  CHECK(Context::finish(master).exit_code == 0);
  training.log = master.errors();
  return training;
}

bool warns_of_redis(const Training& training) {
  return training.log.find("cannot reach Redis") != std::string::npos;
}

}  // namespace

TEST_CASE("--host alone is where the master listens") {
  const Training training = train({"--host", "127.0.0.2"});
  CHECK(training.address.find("speedo://127.0.0.2:") == 0);
  CHECK_FALSE(warns_of_redis(training));
}

TEST_CASE("A master that listens everywhere announces what others reach, if Redis is not there") {
  const std::string own = reachable_address("0.0.0.0");
  const Training training = train({"--bind", "0.0.0.0", "--insecure"});
  CHECK(training.address.find("speedo://" + (own.empty() ? "127.0.0.1" : own) + ":") == 0);
  CHECK(warns_of_redis(training));
  CHECK(train({"--bind", "0.0.0.0", "--insecure", "--host", "localhost"})
            .address.find("speedo://localhost:") == 0);
}

TEST_CASE("A master without --redis and without a Redis where one is expected has its own") {
  if (is_somebody_at(RedisAddress{})) SPEEDO_SKIP("this machine has a Redis at its default port");
  Context place;
  const Words command{"speedo-master", "--solver", place.write_solver("max_iter: 1"), "--workers",
                      "1"};
  Process master = place.start(command);
  const std::string address = announced_address(master);
  CHECK(master.errors().find("a private one is started") != std::string::npos);
  CHECK(place.run({"speedo-worker", "--master", address}).exit_code == 0);
  CHECK(Context::finish(master).exit_code == 0);

  Words resumed = command;
  resumed.emplace_back("--resume=auto");
  const Outcome refused = place.run(resumed);
  CHECK(refused.exit_code == 69);
  CHECK(refused.error_line().find("--resume=auto") != std::string::npos);
}

TEST_CASE("A master's own Redis that dies is started again, and training goes on") {
  if (is_somebody_at(RedisAddress{})) SPEEDO_SKIP("this machine has a Redis at its default port");
  Context place;
  Process master = place.start({"speedo-master", "--solver",
                                place.write_solver("max_iter: 100000000"), "--workers", "1"});
  Process worker =
      place.start({"speedo-worker", "--master", announced_address(master)});
  REQUIRE(master.says("Iteration 10 ("));
  const auto servers = children_of(master.id(), "redis-server");
  REQUIRE(servers.size() == 1);
  ::kill(servers.front(), SIGKILL);
  REQUIRE(master.says("The private redis-server was started again"));
  const std::size_t before = master.errors().size();
  for (int i = 0; i < 12000 && master.running(); ++i) {
    if (master.errors().find("Iteration ", before) != std::string::npos) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(master.errors().find("Iteration ", before) != std::string::npos);
  master.signal(SIGINT);
  CHECK(Context::finish(master).exit_code == 0);
}

TEST_CASE("--sleepAfterFinish ends by itself after its seconds") {
  const Training training = train({"--sleepAfterFinish", "1"});
  CHECK(training.log.find("waiting 1 s") != std::string::npos);
}

TEST_CASE("A master's result tells what memory was predicted for it") {
  Context place;
  RedisServer redis;
  const Words command{"speedo-master", "--solver",      place.write_solver("max_iter: 1"),
                      "--redis",       redis.tcp_uri(), "--json"};
  Process master = place.start(command);
  place.run({"speedo-worker", "--master", announced_address(master)});
  const auto result = Context::finish(master).json();
  CHECK(result["predicted_memory_bytes"].get<std::uint64_t>() > 1U << 20U);
}

}  // namespace speedo::test
