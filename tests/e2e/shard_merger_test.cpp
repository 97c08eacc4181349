// Mergers beside the servers of a job: each may die, with its server or alone, and the master too;
// every iteration counts once.
#include <signal.h>

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/free_port.hpp"

#include <speedo/base/random.hpp>

#include "cluster.hpp"

namespace speedo {
namespace {

using test::Arguments;
using test::Cluster;
using test::Process;

constexpr std::size_t kShards = 3;

// Weights of three chunks, one for each shard.
Cluster::Options in_shards() {
  Cluster::Options options;
  options.servers = kShards;
  options.rows = 9000;
  return options;
}

// Two who train, one merger a shard.
struct Shards {
  Cluster& cluster;
  std::string address;
  std::vector<Process*> mergers = {};

  void start(std::size_t shard) {
    Process& merger =
        cluster.start_worker(address, {"--shard=" + std::to_string(shard + 1)});
    if (mergers.size() <= shard) mergers.resize(shard + 1);
    mergers[shard] = &merger;
  }
  void start_all() {
    for (std::size_t shard = 0; shard < kShards; ++shard) start(shard);
  }
  void kill(std::size_t shard) {
    mergers[shard]->signal(SIGKILL);
    CHECK(mergers[shard]->wait() == 128 + SIGKILL);
  }
};

Arguments master_flags(bool sync) {
  Arguments flags{"--workers", "2", "--shards", std::to_string(kShards)};
  if (sync) flags.emplace_back("--sync");
  return flags;
}

// How often a master says that a merger of a shard has come.
std::size_t comings(const Process& master) {
  const std::string said = master.errors(), word = " is merged by ";
  std::size_t count = 0;
  for (std::size_t at = said.find(word); at != std::string::npos; at = said.find(word, at + 1)) {
    count += 1;
  }
  return count;
}

}  // namespace

TEST_CASE("mergers of shards die at random moments, others take their places") {
  for (const int round : test::rounds(1)) {
    Random random = Random::derive(test::seed(), {23, static_cast<std::uint64_t>(round)});
    const bool sync = random.below(2) == 0;
    const std::uint64_t iterations = sync ? 300 : 750;
    CAPTURE(test::seed(), round, sync);
    Cluster cluster(iterations, in_shards());
    Process& master = cluster.start_master(master_flags(sync));
    Shards shards{cluster, cluster.address()};

    shards.start_all();
    for (int i = 0; i < 2; ++i) cluster.start_worker(shards.address);
    for (std::uint64_t death = 0; death < 3; ++death) {
      REQUIRE(cluster.counts_beyond(death * iterations / 6 + random.below(iterations / 6)));
      test::sleep_ms(random.below(30));
      const std::size_t shard = random.below(kShards);
      shards.kill(shard);
      if (random.below(3) != 0) shards.start(shard);
    }
    test::require_ending(cluster, master, {iterations, 2, 0});
    CHECK(comings(master) >= kShards);
    CHECK(master.errors().find("; the part is merged here") != std::string::npos);
    CHECK(cluster.worker_keys() == 0);
  }
}

TEST_CASE("the server of a shard dies with all it holds, alone or together with its merger") {
  for (const int round : test::rounds(1)) {
    const bool together = round % 2 == 1;
    Random random = Random::derive(test::seed(), {24, static_cast<std::uint64_t>(round)});
    const bool sync = random.below(2) == 0;
    const std::uint64_t iterations = sync ? 300 : 750;
    CAPTURE(test::seed(), round, sync);
    Cluster cluster(iterations, in_shards());
    Process& master = cluster.start_master(master_flags(sync));
    Shards shards{cluster, cluster.address()};

    shards.start_all();
    for (int i = 0; i < 2; ++i) cluster.start_worker(shards.address);
    for (std::uint64_t death = 0; death < 2; ++death) {
      REQUIRE(cluster.counts_beyond(death * iterations / 4 + random.below(iterations / 4)));
      test::sleep_ms(random.below(30));
      const std::size_t shard = random.below(kShards);
      cluster.redis(shard).kill();
      if (together) shards.kill(shard);
      test::sleep_ms(random.below(500));
      cluster.redis(shard).start();
      if (together && random.below(2) == 0) shards.start(shard);
    }
    test::require_ending(cluster, master, {iterations, 2, 0});
    CHECK(cluster.worker_keys() == 0);
  }
}

TEST_CASE("mergers of steps die, and servers with all they hold, and each iteration counts") {
  for (const int round : test::rounds(1)) {
    Random random = Random::derive(test::seed(), {27, static_cast<std::uint64_t>(round)});
    const std::uint64_t iterations = 400;
    CAPTURE(test::seed(), round);
    Cluster cluster(iterations, in_shards());
    Arguments flags = master_flags(true);
    flags.insert(flags.end(), {"--gradient-only", "--replicated"});
    Process& master = cluster.start_master(flags);
    Shards shards{cluster, cluster.address()};

    shards.start_all();
    for (int i = 0; i < 2; ++i) cluster.start_worker(shards.address);
    for (std::uint64_t death = 0; death < 4; ++death) {
      REQUIRE(cluster.counts_beyond(death * iterations / 8 + random.below(iterations / 8)));
      test::sleep_ms(random.below(30));
      const std::size_t shard = random.below(kShards);
      if (death % 2 == 0) {
        shards.kill(shard);
        shards.start(shard);
        continue;
      }
      cluster.redis(shard).kill();
      test::sleep_ms(random.below(500));
      cluster.redis(shard).start();
    }
    test::require_ending(cluster, master, {iterations, 2, 0});
    CHECK(comings(master) >= kShards);
    CHECK(cluster.worker_keys() == 0);
  }
}

TEST_CASE("the master of a job in shards dies, its mergers serve the next") {
  for (const int round : test::rounds(1)) {
    Random random = Random::derive(test::seed(), {25, static_cast<std::uint64_t>(round)});
    const bool sync = random.below(2) == 0;
    const std::uint64_t iterations = sync ? 300 : 750;
    CAPTURE(test::seed(), round, sync);
    Cluster cluster(iterations, in_shards());
    const test::ReservedPort reserved;
    const Arguments flags = test::joined(master_flags(sync), {"--port", reserved.text()});
    Process* master = &cluster.start_master(flags);
    Shards shards{cluster, cluster.address()};

    shards.start_all();
    for (int i = 0; i < 2; ++i) cluster.start_worker(shards.address);
    REQUIRE(cluster.counts_beyond(random.below(iterations / 2)));
    test::sleep_ms(random.below(30));
    master->signal(SIGKILL);
    master->wait();
    const std::uint64_t seen = cluster.counted().value();
    master = &cluster.start_master(test::joined(flags, {"--resume"}));
    REQUIRE(master->says("goes on from iteration"));
    CHECK(test::resumed_from(*master) >= seen);
    test::require_ending(cluster, *master, {iterations, 2, test::resumed_from(*master)});
    CHECK(comings(*master) >= kShards);
    CHECK(cluster.worker_keys() == 0);
  }
}

}  // namespace speedo
