// Processes that exchange through shared memory, and die: every iteration counts once, though the
// store follows behind the merges.
#include <signal.h>

#include <filesystem>
#include <set>

#include "support/catch.hpp"
#include "support/free_port.hpp"

#include <speedo/base/random.hpp>

#include "cluster.hpp"

namespace speedo {
namespace {

using test::Arguments;
using test::Cluster;
using test::Process;

struct SharingJob {
  const char* name;
  std::uint64_t iterations;
  Arguments flags;
  std::uint64_t contributors_max;
  bool has_histories;  // on the master, which go to the store beside the weights
};
const SharingJob kSharingJobs[] = {
    {"sync", 6000, {"--sync"}, 3, false},
    {"sync gradient only", 6000, {"--sync", "--gradient-only"}, 3, true},
    {"async", 20000, {}, 1, false},
    {"ssp", 20000, {"--strategy", "ssp", "--staleness", "3"}, 1, false},
};

const std::string kShares = "through memory that both have";

Cluster::Options sharing() {
  Cluster::Options options;
  options.shared_memory = true;
  return options;
}

std::set<std::string> shared_files() {
  std::set<std::string> names;
  for (const auto& each : std::filesystem::directory_iterator("/dev/shm")) {
    names.insert(each.path().filename().string());
  }
  return names;
}

}  // namespace

TEST_CASE("processes that share memory are killed at random moments, and each iteration counts") {
  const std::set<std::string> before = shared_files();
  for (const int round : test::rounds(2)) {
    Random random = Random::derive(test::seed(), {11, static_cast<std::uint64_t>(round)});
    const SharingJob& job = kSharingJobs[static_cast<std::size_t>(round) % std::size(kSharingJobs)];
    CAPTURE(test::seed(), round, job.name);
    Cluster cluster(job.iterations, sharing());
    const test::ReservedPort reserved;
    const Arguments flags =
        test::joined(job.flags, Arguments{"--workers", "2:3", "--port", reserved.text()});
    Process* master = &cluster.start_master(flags);
    const std::string address = cluster.address();
    for (int i = 0; i < 3; ++i) cluster.start_worker(address);
    for (Process& worker : cluster.workers()) REQUIRE(worker.says(kShares));

    REQUIRE(cluster.counts_beyond(random.below(job.iterations / 8)));
    const std::uint64_t stored = test::kill_worker_and_master(cluster, *master, address, random);
    master = &cluster.start_master(test::joined(flags, Arguments{"--resume"}));
    REQUIRE(master->says("goes on from iteration"));
    const std::uint64_t from = test::resumed_from(*master);
    CHECK((job.has_histories || from == stored));
    test::require_ending(cluster, *master, {job.iterations, job.contributors_max, from});
    CHECK(cluster.worker_keys() == 0);
  }
  CHECK(shared_files() == before);
}

TEST_CASE("a worker that shares memory trains beside one that does not") {
  const std::uint64_t iterations = 10000;  // one worker alone does thousands a second
  Cluster cluster(iterations, sharing());
  Process& master = cluster.start_master({"--workers", "2", "--sync"});
  const std::string address = cluster.address();
  Process& inside = cluster.start_worker(address);
  Process& outside = cluster.start_worker(address, {"--no-shared-memory"});
  REQUIRE(inside.says(kShares));
  // Each version is in the store before the worker outside hears of it.
  REQUIRE(cluster.counts_beyond(iterations / 2));
  outside.signal(SIGKILL);
  outside.wait();
  cluster.start_worker(address, {"--no-shared-memory"});
  test::require_ending(cluster, master, {iterations, 2, 0});
  CHECK(outside.errors().find(kShares) == std::string::npos);
}

TEST_CASE("merges in shared memory go on while Redis is away, and are there in the end") {
  const std::uint64_t iterations = 60000;  // more than are over when the first are in the store
  Cluster cluster(iterations, {.append_only = true, .shared_memory = true});
  Process& master = cluster.start_master({"--workers", "2"});
  cluster.start_worker(cluster.address(), {"--workers", "2"});
  REQUIRE(cluster.counts_beyond(10));
  cluster.redis().kill();
  test::sleep_ms(3000);
  CHECK(master.running());
  cluster.redis().start();
  test::require_ending(cluster, master, {iterations, 1, 0});
  CHECK(cluster.worker_keys() == 0);
}

TEST_CASE("a master that shares no memory tells nobody of it, nor does a worker that wants none") {
  Cluster cluster(50);
  Process& master = cluster.start_master({"--workers", "1"});
  Process& worker = cluster.start_worker(cluster.address());
  test::require_ending(cluster, master, {50, 1, 0});
  CHECK(worker.errors().find("shared") == std::string::npos);
  CHECK(worker.errors().find(kShares) == std::string::npos);
}

}  // namespace speedo
