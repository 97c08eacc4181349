// Replicas that apply their master's steps, and die, join, lose their store: every iteration
// counts once.
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

const std::string kAsFactors = "sum as factors";

// So many that for three workers the factors are the smaller.
Cluster::Options with_rows() {
  Cluster::Options options;
  options.rows = 256;
  return options;
}

Arguments replicated(bool factors) {
  Arguments flags{"--sync", "--gradient-only", "--replicated"};
  if (!factors) flags.emplace_back("--no-factors");
  return flags;
}

TEST_CASE("replicas and their master are killed at random moments, and each iteration counts") {
  for (const int round : test::rounds(1)) {
    Random random = Random::derive(test::seed(), {23, static_cast<std::uint64_t>(round)});
    const bool factors = round % 2 == 0;
    const std::uint64_t iterations = 1500;
    CAPTURE(test::seed(), round, factors);
    Cluster cluster(iterations, with_rows());
    const test::ReservedPort reserved;
    const Arguments flags = test::joined(
        replicated(factors), Arguments{"--workers", "2:3", "--port", reserved.text()});
    Process* master = &cluster.start_master(flags);
    const std::string address = cluster.address();
    for (int i = 0; i < 3; ++i) cluster.start_worker(address);
    REQUIRE(cluster.counts_beyond(random.below(iterations / 4)));
    CHECK((master->errors().find(kAsFactors) != std::string::npos) == factors);
    const std::uint64_t stored = test::kill_worker_and_master(cluster, *master, address, random);
    master = &cluster.start_master(test::joined(flags, Arguments{"--resume"}));
    REQUIRE(master->says("goes on from iteration"));
    CHECK(test::resumed_from(*master) == stored);
    test::require_ending(cluster, *master, {iterations, 3, stored});
    CHECK(cluster.worker_keys() == 0);
  }
}

TEST_CASE("a redis-server that loses steps and weights loses no iteration") {
  const std::uint64_t iterations = 1500;
  Cluster cluster(iterations, with_rows());
  Process& master = cluster.start_master(test::joined(replicated(true), {"--workers", "2"}));
  const std::string address = cluster.address();
  for (int i = 0; i < 2; ++i) cluster.start_worker(address);
  Random random = Random::derive(test::seed(), {24});
  for (int death = 0; death < 2; ++death) {
    REQUIRE(cluster.counts_beyond(cluster.counted().value_or(0) + random.below(100)));
    REQUIRE(master.running());
    cluster.redis().kill();
    test::sleep_ms(random.below(500));
    cluster.redis().start();
  }
  test::require_ending(cluster, master, {iterations, 2, 0});
  CHECK(cluster.worker_keys() == 0);
}

TEST_CASE("a worker that joins a long training reads the weights and trains with the others") {
  const std::uint64_t iterations = 5000;  // the first alone takes a second for 1,500
  Cluster cluster(iterations, with_rows());
  Process& master = cluster.start_master(test::joined(replicated(true), {"--workers", "1:3"}));
  const std::string address = cluster.address();
  cluster.start_worker(address);
  // By the records' heads: whoever reads weights so short-lived is overtaken again and again.
  REQUIRE(cluster.gets_beyond(100));
  cluster.start_worker(address);
  REQUIRE(cluster.gets_beyond(300));
  cluster.start_worker(address);
  test::require_ending(cluster, master, {iterations, 3, 0});
  CHECK(Cluster::result(master)["contributions"] > iterations);
}

}  // namespace
}  // namespace speedo
