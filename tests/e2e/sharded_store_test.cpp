// A job that is spread over several Redis servers, each of which may die: every iteration counts
// once.
#include <signal.h>

#include "support/catch.hpp"
#include "support/free_port.hpp"

#include <speedo/base/random.hpp>

#include "cluster.hpp"

namespace speedo {
namespace {

using test::Arguments;
using test::Cluster;
using test::Process;

constexpr int kServers = 3;

// Weights of three chunks, one for each server.
Cluster::Options spread(bool append_only, bool shared_memory) {
  Cluster::Options options;
  options.append_only = append_only;
  options.shared_memory = shared_memory;
  options.servers = kServers;
  options.rows = 9000;
  return options;
}

}  // namespace

TEST_CASE("any of several redis-servers dies, with its data or without") {
  for (const int round : test::rounds(1)) {
    Random random = Random::derive(test::seed(), {19, static_cast<std::uint64_t>(round)});
    const bool sync = random.below(2) == 0, shared_memory = random.below(2) == 0;
    const bool keeps_data = random.below(2) == 0;
    // So many that the servers die long before the end.
    const std::uint64_t iterations = (sync ? 350 : 1100) * (shared_memory ? 4 : 1);
    CAPTURE(test::seed(), round, sync, shared_memory, keeps_data);
    Cluster cluster(iterations, spread(keeps_data, shared_memory));
    Arguments flags{"--workers", "2"};
    if (sync) flags.emplace_back("--sync");
    Process& master = cluster.start_master(flags);
    const std::string address = cluster.address();
    cluster.start_worker(address);
    cluster.start_worker(address);
    for (std::uint64_t death = 0; death < 2; ++death) {
      REQUIRE(cluster.counts_beyond(death * 50 + random.below(iterations / 8)));
      test::sleep_ms(random.below(30));
      const std::size_t server = random.below(kServers);
      cluster.redis(server).kill();
      test::sleep_ms(random.below(1000));
      cluster.redis(server).start();
    }
    test::require_ending(cluster, master, {iterations, 3, 0});
    CHECK(cluster.worker_keys() == 0);
  }
}

TEST_CASE("worker and master of a job on several redis-servers die, and it goes on") {
  for (const int round : test::rounds(1)) {
    Random random = Random::derive(test::seed(), {20, static_cast<std::uint64_t>(round)});
    const bool sync = random.below(2) == 0;
    const std::uint64_t iterations = sync ? 300 : 1000;
    CAPTURE(test::seed(), round, sync);
    Cluster cluster(iterations, spread(false, false));
    const test::ReservedPort reserved;
    Arguments flags{"--workers", "2:3", "--port", reserved.text()};
    if (sync) flags.emplace_back("--sync");
    Process* master = &cluster.start_master(flags);
    const std::string address = cluster.address();
    for (int i = 0; i < 3; ++i) cluster.start_worker(address);
    REQUIRE(cluster.counts_beyond(random.below(iterations / 3)));
    test::sleep_ms(random.below(30));
    cluster.workers().front().signal(SIGKILL);
    cluster.start_worker(address);
    test::sleep_ms(random.below(300));
    master->signal(SIGKILL);
    master->wait();
    const std::uint64_t seen = cluster.counted().value();
    master = &cluster.start_master(test::joined(flags, {"--resume"}));
    REQUIRE(master->says("goes on from iteration"));
    CHECK(test::resumed_from(*master) == seen);
    test::require_ending(cluster, *master, {iterations, 3, seen});
    CHECK(cluster.worker_keys() == 0);
  }
}

}  // namespace speedo
