// A job on a primary that Sentinels watch, which dies while it trains.

#include <string>

#include "support/catch.hpp"
#include "support/redis_sentinel.hpp"

#include <speedo/base/random.hpp>

#include "cluster.hpp"

namespace speedo {
namespace {

using test::Cluster;
using test::Process;
using test::RedisSentinelGroup;

}  // namespace

// The replica is behind by what the primary wrote while it stood still: versions go back.
TEST_CASE("a primary that Sentinels watch dies while a job trains on it") {
  for (const int round : test::rounds(1)) {
    Random random = Random::derive(test::seed(), {29, static_cast<std::uint64_t>(round)});
    const bool sync = random.below(2) == 0;
    const std::uint64_t iterations = sync ? 300 : 600;
    CAPTURE(test::seed(), round, sync);
    RedisSentinelGroup group;
    Cluster::Options options;
    options.redis = group.address();
    options.rows = 8192;
    Cluster cluster(iterations, options);
    std::vector<std::string> flags{"--workers", "2"};
    if (sync) flags.emplace_back("--sync");
    Process& master = cluster.start_master(flags);
    const std::string address = cluster.address();
    cluster.start_worker(address);
    cluster.start_worker(address);
    REQUIRE(cluster.counts_beyond(random.below(iterations / 4)));
    group.replica().pause();
    test::sleep_ms(200 + random.below(200));
    group.primary().kill();
    group.replica().resume();
    test::require_ending(cluster, master, {iterations, 2, 0});
    CHECK(group.primary_port() == group.replica().port());
  }
}

}  // namespace speedo
