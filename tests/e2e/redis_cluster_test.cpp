// A job on a Redis Cluster, whose slots move and whose primaries are replaced while it trains:
// every iteration counts once.
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/redis_cluster.hpp"

#include <speedo/base/random.hpp>

#include "cluster.hpp"
#include "store/redis/key_slot.hpp"

namespace speedo {
namespace {

using test::Arguments;
using test::Cluster;
using test::Process;
using test::RedisCluster;

// Weights of six chunks, which lie on all three primaries.
Cluster::Options on(const RedisCluster& nodes) {
  Cluster::Options options;
  options.redis = nodes.address();
  options.rows = 22000;
  return options;
}

Arguments two_workers(bool sync) {
  Arguments flags{"--workers", "2"};
  if (sync) flags.emplace_back("--sync");
  return flags;
}

}  // namespace

TEST_CASE("slots of a Redis Cluster move while a job trains on it") {
  RedisCluster nodes;
  for (const int round : test::rounds(1)) {
    Random random = Random::derive(test::seed(), {27, static_cast<std::uint64_t>(round)});
    const bool sync = random.below(2) == 0;
    const std::uint64_t iterations = sync ? 170 : 280;
    CAPTURE(test::seed(), round, sync);
    nodes.flush();
    Cluster cluster(iterations, on(nodes));
    Process& master = cluster.start_master(two_workers(sync));
    const std::string address = cluster.address();
    cluster.start_worker(address);
    cluster.start_worker(address);
    const std::vector<std::string> tags = part_tags("count");
    // The first part has the manifests and says who is master.
    const std::vector<std::size_t> parts = {0, 1 + random.below(5)};
    for (const bool back : {false, true}) {
      REQUIRE(cluster.counts_beyond((back ? 60 : 0) + random.below(60)));
      for (const std::size_t part : parts) {
        const std::uint16_t slot = key_slot(tags[part]);
        const std::size_t home = nodes.first_owner(slot), other = (home + 1) % 3;
        nodes.move(slot, back ? other : home, back ? home : other);
      }
      // Else slots could be back before the master asks for anything that lies in them.
      const bool has_noticed = master.says("slots are elsewhere now, on 3 primaries");
      INFO(master.errors());
      REQUIRE(has_noticed);
    }
    test::require_ending(cluster, master, {iterations, 2, 0});
    CHECK(cluster.worker_keys() == 0);
  }
}

// Two mergers of parts, of which one's slot goes to another primary; the master merges the rest.
TEST_CASE("a job on a Redis Cluster with a password is merged in sixteen parts") {
  RedisCluster nodes({.password = "hush"});
  constexpr std::uint64_t kIterations = 120;
  Cluster::Options options = on(nodes);
  options.password = "hush";
  Cluster cluster(kIterations, options);
  // What the master tells the others has no password: each has it from its own environment.
  const std::vector<std::string> secret = {"SPEEDO_REDIS_PASSWORD=hush"};
  Process& master = cluster.start_master({"--workers", "2", "--shards", "16"}, secret);
  const std::string address = cluster.address();
  for (const char* part : {"--shard=1", "--shard=3"}) {
    cluster.start_worker(address, {part}, secret);
  }
  cluster.start_worker(address, {}, secret);
  cluster.start_worker(address, {}, secret);
  REQUIRE(cluster.counts_beyond(20));
  const std::uint16_t slot = key_slot(part_tags("count")[2]);
  const std::size_t home = nodes.first_owner(slot);
  nodes.move(slot, home, (home + 1) % 3);
  test::require_ending(cluster, master, {kIterations, 2, 0});
  CHECK(master.errors().find(" is merged by ") != std::string::npos);
  CHECK(cluster.worker_keys() == 0);
}

TEST_CASE("a primary of a Redis Cluster dies while a job trains on it, and its replica goes on") {
  for (const int round : test::rounds(1)) {
    Random random = Random::derive(test::seed(), {28, static_cast<std::uint64_t>(round)});
    const bool sync = random.below(2) == 0;
    const std::uint64_t iterations = sync ? 120 : 240;
    CAPTURE(test::seed(), round, sync);
    RedisCluster nodes({.replicas = 1, .node_timeout_ms = 1000});
    Cluster cluster(iterations, on(nodes));
    Process& master = cluster.start_master(two_workers(sync));
    const std::string address = cluster.address();
    cluster.start_worker(address);
    cluster.start_worker(address);
    REQUIRE(cluster.counts_beyond(random.below(iterations / 4)));
    test::sleep_ms(random.below(30));
    nodes.node(0).kill();
    test::require_ending(cluster, master, {iterations, 2, 0});
    CHECK(nodes.ask(3, "INFO replication").find("role:master") != std::string::npos);
  }
}

}  // namespace speedo
