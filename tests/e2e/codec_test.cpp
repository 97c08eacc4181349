// Contributions that travel by a codec, and processes that die: every iteration counts once. The
// gradients of these jobs are numbers that the codecs give back exactly.
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

struct CodedJob {
  const char* codec;
  Arguments flags;
  std::uint64_t contributors_max;
};
const CodedJob kCodedJobs[] = {
    {"bf16", {"--sync"}, 3},
    {"onebit", {}, 1},
    {"topk:100", {"--strategy", "ssp", "--staleness", "2"}, 1},
};

}  // namespace

TEST_CASE("workers and masters of a coded job are killed at random moments") {
  constexpr std::uint64_t kIterations = 1000;
  for (const int round : test::rounds(2)) {
    Random random = Random::derive(test::seed(), {17, static_cast<std::uint64_t>(round)});
    const CodedJob& job = kCodedJobs[static_cast<std::size_t>(round) % std::size(kCodedJobs)];
    CAPTURE(test::seed(), round, job.codec);
    Cluster cluster(kIterations);
    const test::ReservedPort reserved;
    const Arguments flags = test::joined(
        job.flags, {"--codec", job.codec, "--workers", "2:3", "--port", reserved.text()});
    Process* master = &cluster.start_master(flags);
    CHECK(master->says(std::string("coded as ") + job.codec));
    const std::string address = cluster.address();
    for (int i = 0; i < 3; ++i) cluster.start_worker(address);

    REQUIRE(cluster.counts_beyond(random.below(kIterations / 4)));
    cluster.workers().front().signal(SIGKILL);
    cluster.start_worker(address);
    test::sleep_ms(random.below(300));
    master->signal(SIGKILL);
    REQUIRE(master->wait() == 128 + SIGKILL);
    master = &cluster.start_master(test::joined(flags, {"--resume"}));
    REQUIRE(master->says("goes on from iteration"));
    const std::uint64_t from = test::resumed_from(*master);
    test::require_ending(cluster, *master, {kIterations, job.contributors_max, from});
    CHECK(cluster.worker_keys() == 0);
  }
}

}  // namespace speedo
