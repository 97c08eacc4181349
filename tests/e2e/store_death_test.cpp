// A redis-server that dies, with and without its data, alone and with the master.
#include <signal.h>

#include "support/catch.hpp"
#include "support/free_port.hpp"

#include <speedo/base/random.hpp>

#include "cluster.hpp"

namespace speedo {
namespace {

using test::Cluster;
using test::Process;

}  // namespace

TEST_CASE("a redis-server that loses its data while the master lives costs nothing") {
  for (const int round : test::rounds(1)) {
    Random random = Random::derive(test::seed(), {3, static_cast<std::uint64_t>(round)});
    const bool sync = round % 2 == 1;
    const std::uint64_t iterations = sync ? 1200 : 5000;
    CAPTURE(test::seed(), round, sync);
    Cluster cluster(iterations);
    std::vector<std::string> flags{"--workers", "2"};
    if (sync) flags.emplace_back("--sync");
    Process& master = cluster.start_master(flags);
    const std::string address = cluster.address();
    cluster.start_worker(address);
    cluster.start_worker(address);
    for (std::uint64_t death = 0; death < 2; ++death) {
      REQUIRE(cluster.counts_beyond(death * 200 + random.below(iterations / 4)));
      test::sleep_ms(random.below(30));
      cluster.redis().kill();
      test::sleep_ms(random.below(1000));
      cluster.redis().start();
    }
    // The job can be read again, too: unless all is over by now.
    if (cluster.counts_beyond(0) && master.running()) cluster.start_worker(address);
    test::require_ending(cluster, master, {iterations, 3, 0});
    CHECK(cluster.worker_keys() == 0);
  }
}

TEST_CASE("master and redis-server both die; with the server's data the job goes on") {
  for (const int round : test::rounds(1)) {
    Random random = Random::derive(test::seed(), {4, static_cast<std::uint64_t>(round)});
    const bool sync = round % 2 == 1;
    const std::uint64_t iterations = sync ? 600 : 2000;
    CAPTURE(test::seed(), round, sync);
    Cluster cluster(iterations, {.append_only = true});
    const test::ReservedPort reserved;
    const std::string port = reserved.text();
    std::vector<std::string> flags{"--workers", "2", "--port", port};
    if (sync) flags.emplace_back("--sync");
    Process& first = cluster.start_master(flags);
    const std::string address = cluster.address();
    cluster.start_worker(address);
    cluster.start_worker(address);
    REQUIRE(cluster.counts_beyond(random.below(iterations / 3)));
    test::sleep_ms(random.below(30));
    const bool server_first = random.below(2) == 0;
    if (server_first) cluster.redis().kill();
    test::sleep_ms(random.below(50));
    first.signal(SIGKILL);
    first.wait();
    if (!server_first) cluster.redis().kill();
    test::sleep_ms(random.below(500));
    cluster.redis().start();
    const std::uint64_t seen = cluster.counted().value();
    flags.emplace_back("--resume");
    Process& second = cluster.start_master(flags);
    REQUIRE(second.says("training starts"));
    CHECK(test::resumed_from(second) == seen);
    test::require_ending(cluster, second, {iterations, 2, seen});
    for (Process& worker : cluster.workers()) CHECK(worker.wait() == 0);
  }
}

TEST_CASE("a store that stays away ends a master that only waits, with a named error") {
  Cluster cluster(1000000);
  Process& master = cluster.start_master({"--workers", "1", "--store-timeout", "1"});
  cluster.address();
  cluster.redis().kill();
  CHECK(master.wait(std::chrono::seconds{60}) == 69);
  CHECK(master.errors().find("Redis") != std::string::npos);
}

}  // namespace speedo
