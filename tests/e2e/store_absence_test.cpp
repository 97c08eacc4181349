// A redis-server that is away for long, or frozen, while a job trains or ends.
#include <signal.h>

#include <fstream>
#include <iomanip>
#include <optional>
#include <sstream>

#include "support/catch.hpp"

#include "cluster.hpp"
#include "store/redis/redis_session.hpp"
#include "support/poll.hpp"

namespace speedo {
namespace {

using test::Cluster;
using test::Process;
using std::chrono::seconds;

// The record of a checkpoint, if there is one.
std::optional<std::string> checkpoint_of(const Cluster& cluster) {
  for (const auto& entry : std::filesystem::directory_iterator(cluster.file("."))) {
    if (entry.path().extension() == ".speedo") return entry.path().string();
  }
  return std::nullopt;
}

// Whether somebody is connected to a port of this machine.
bool is_connected_to(int port) {
  constexpr const char* kEstablished = "01";
  std::ostringstream peer;
  peer << ':' << std::hex << std::uppercase << std::setw(4) << std::setfill('0') << port;
  std::ifstream table("/proc/net/tcp");
  std::string number, local, remote, state, rest;
  while (table >> number >> local >> remote >> state && std::getline(table, rest)) {
    if (remote.ends_with(peer.str()) && state == kEstablished) return true;
  }
  return false;
}

// Longer than all attempts at one operation; minutes if is_long().
std::uint64_t long_absence_ms() { return test::is_long() ? 180'000 : 20'000; }

}  // namespace

TEST_CASE("training goes on after Redis was away for long, with nothing lost") {
  // One of the two schedules, in long runs both.
  for (int round = 0; round < (test::is_long() ? 2 : 1); ++round) {
    const bool sync = (test::seed() + static_cast<std::uint64_t>(round)) % 2 == 1;
    const std::uint64_t iterations = sync ? 500 : 2000;
    CAPTURE(test::seed(), sync);
    Cluster cluster(iterations, {.append_only = true});
    std::vector<std::string> flags{"--workers", "2"};
    if (sync) flags.emplace_back("--sync");
    Process& master = cluster.start_master(flags);
    cluster.start_worker(cluster.address(), {"--workers", "2"});
    REQUIRE(cluster.counts_beyond(iterations / 10));
    cluster.redis().kill();
    test::sleep_ms(long_absence_ms());
    CHECK(master.running());
    CHECK(master.errors().find("--store-timeout") != std::string::npos);
    cluster.redis().start();
    test::require_ending(cluster, master, {iterations, 2, 0});
    CHECK(cluster.worker_keys() == 0);
  }
}

TEST_CASE("training goes on once a Redis whose disk failed can save again") {
  constexpr std::uint64_t kIterations = 2000;
  Cluster cluster(kIterations, {.redis_lines = "save 3600 1"});
  Process& master = cluster.start_master({"--workers", "2"});
  cluster.start_worker(cluster.address(), {"--workers", "2"});
  REQUIRE(cluster.counts_beyond(kIterations / 10));
  const auto options = parse_redis_uri(cluster.redis().unix_uri());
  REQUIRE(options);
  const auto session = RedisSession::connect(*options, std::nullopt);
  REQUIRE(session);
  // A folder lies where its file should.
  const auto file = std::filesystem::path(options->address.unix_path).parent_path() / "dump.rdb";
  std::filesystem::create_directories(file / "in the way");
  REQUIRE((*session)->command({"BGSAVE"}));
  test::poll_until([&] { return master.errors().find("MISCONF") != std::string::npos; });
  // Another connects meanwhile.
  cluster.start_worker(cluster.address());
  test::sleep_ms(3000);
  CHECK(master.running());
  std::filesystem::remove_all(file);
  REQUIRE((*session)->command({"SAVE"}));
  test::require_ending(cluster, master, {kIterations, 3, 0});
}

TEST_CASE("Redis away for longer than --store-timeout: 69, and a checkpoint that resumes") {
  Cluster cluster(100000);
  Process& master = cluster.start_master({"--workers", "1", "--store-timeout", "2"});
  Process& worker = cluster.start_worker(cluster.address());
  REQUIRE(cluster.counts_beyond(100));
  cluster.redis().kill();
  const auto code = master.wait();
  INFO(master.errors());
  REQUIRE(code == 69);
  worker.signal(SIGKILL);
  const auto record = checkpoint_of(cluster);
  REQUIRE(record);
  const std::string& name = *record;
  const std::string errors = master.errors();
  const std::string last = errors.substr(errors.rfind('\n', errors.size() - 2) + 1);
  CHECK(last.find("--store-timeout") != std::string::npos);
  CHECK(last.find("--resume=auto goes on from '") != std::string::npos);
  CHECK(last.find(std::filesystem::path(name).filename().string() + "'") != std::string::npos);
  const std::uint64_t iteration = std::stoull(name.substr(name.rfind('_') + 1));
  CHECK(iteration >= 100);

  cluster.redis().start();
  const std::string end_iteration = std::to_string(iteration + 10);
  Process& second = cluster.start_master(
      {"--workers", "1", "--resume=" + name, "--max-iter", end_iteration});
  cluster.start_worker(cluster.address());
  test::require_ending(cluster, second, {iteration + 10, 1, iteration});
}

// As after a failover, or while too few replicas follow.
TEST_CASE("Redis that answers reads and refuses writes: 69 after --store-timeout, a checkpoint") {
  Cluster cluster(1000000);
  Process& master = cluster.start_master({"--workers", "1", "--store-timeout", "2"});
  Process& worker = cluster.start_worker(cluster.address());
  REQUIRE(cluster.counts_beyond(100));
  const auto options = parse_redis_uri(cluster.redis().tcp_uri());
  REQUIRE(options);
  const auto session = RedisSession::connect(*options, std::nullopt);
  REQUIRE(session);
  REQUIRE((*session)->command({"CONFIG", "SET", "min-replicas-to-write", "1"}));
  const auto code = master.wait(seconds{120});
  INFO(master.errors());
  REQUIRE(code == 69);
  CHECK(master.errors().find("NOREPLICAS") != std::string::npos);
  CHECK(checkpoint_of(cluster));
  worker.signal(SIGKILL);
}

TEST_CASE("SIGTERM with a frozen Redis: ends within the grace period, with its snapshot") {
  for (const bool sync : {false, true}) {
    CAPTURE(sync);
    Cluster cluster(1000000);
    std::vector<std::string> flags{"--workers", "2", "--grace-period", "60"};
    if (sync) flags.emplace_back("--sync");
    Process& master = cluster.start_master(flags);
    Process& workers =
        cluster.start_worker(cluster.address(), {"--workers", "2", "--grace-period", "60"});
    REQUIRE(cluster.counts_beyond(100));
    cluster.redis().pause();
    master.signal(SIGTERM);
    workers.signal(SIGTERM);
    const auto code = master.wait();
    INFO(master.errors());
    REQUIRE(code == 0);
    REQUIRE(checkpoint_of(cluster));
    CHECK(workers.wait() == 0);
    cluster.redis().resume();
  }
}

TEST_CASE("SIGTERM with a frozen Redis of several: ends within the grace period, with 0") {
  Cluster::Options options;
  options.servers = 3;
  options.rows = 9000;  // a chunk for each
  Cluster cluster(1000000, options);
  Process& master = cluster.start_master({"--workers", "1"});
  Process& worker = cluster.start_worker(cluster.address());
  REQUIRE(cluster.counts_beyond(20));
  cluster.redis(1).pause();
  master.signal(SIGTERM);
  const auto code = master.wait();
  INFO(master.errors());
  CHECK(code == 0);
  CHECK(checkpoint_of(cluster));
  worker.signal(SIGKILL);
  cluster.redis(1).resume();
}

TEST_CASE("a master that is started before its Redis waits for it, and says so at once") {
  for (const char* resume : {"--resume=auto", "--sync"}) {
    CAPTURE(resume);
    Cluster cluster(100);
    cluster.redis().kill();
    Process& master = cluster.start_master({"--workers", "1", resume});
    REQUIRE(master.says("the store is out of reach at the start: "));
    cluster.redis().start();
    cluster.start_worker(cluster.address());
    test::require_ending(cluster, master, {100, 1, 0});
  }
}

TEST_CASE("a master that waits for its Redis ends with 69 by SIGTERM, and after --store-timeout") {
  Cluster cluster(100);
  cluster.redis().kill();
  Process& stopped = cluster.start_master({"--workers", "1"});
  REQUIRE(stopped.says("the store is out of reach at the start: "));
  stopped.signal(SIGTERM);
  CHECK(stopped.wait() == 69);
  CHECK(stopped.errors().find("while the store was waited for") != std::string::npos);
  Process& patient = cluster.start_master({"--workers", "1", "--store-timeout", "1"});
  CHECK(patient.wait() == 69);
  CHECK(patient.errors().find("(--store-timeout)") != std::string::npos);
}

TEST_CASE("what hangs before training has begun does not outlast the grace period") {
  Cluster cluster(1000);
  cluster.redis().pause();
  Process& master = cluster.start_master({"--workers", "1", "--grace-period", "1"});
  while (master.running() && !is_connected_to(cluster.redis().port())) test::sleep_ms(5);
  master.signal(SIGTERM);
  const auto code = master.wait();
  cluster.redis().resume();
  INFO(master.errors());
  CHECK(code == 75);
  CHECK(master.errors().find("--grace-period") != std::string::npos);
}

}  // namespace speedo
