// Masters that die, sleep and meet, as processes.
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

// One job of a schedule; long enough for whatever happens to it in the middle.
struct DyingJob {
  const char* name;
  std::uint64_t iterations;
  Arguments flags;
  std::uint64_t contributors_max;
  std::uint64_t lost_max;  // iterations that the store may lack after a crash
};
const DyingJob kDyingJobs[] = {
    {"async", 3500, {}, 1, 0},
    {"sync", 900, {"--sync"}, 3, 0},
    {"sync gradient only, published now and then",
     900,
     {"--sync", "--gradient-only", "--publish-interval", "7"},
     3,
     7},
    {"ssp", 3500, {"--strategy", "ssp", "--staleness", "3"}, 1, 0},
};

}  // namespace

TEST_CASE("a master is killed at a random moment and started again: the workers live on") {
  for (const int round : test::rounds(2)) {
    Random random = Random::derive(test::seed(), {1, static_cast<std::uint64_t>(round)});
    const DyingJob& job = kDyingJobs[static_cast<std::size_t>(round) % std::size(kDyingJobs)];
    CAPTURE(test::seed(), round, job.name);
    Cluster cluster(job.iterations);
    const test::ReservedPort reserved;
    const std::string port = reserved.text();
    const Arguments flags = test::joined(job.flags, Arguments{"--workers", "3", "--port", port});
    Process* master = &cluster.start_master(flags);
    const std::string address = cluster.address();
    for (int i = 0; i < 3; ++i) cluster.start_worker(address);
    std::uint64_t from = 0;
    const std::uint64_t deaths = 1 + random.below(2);
    for (std::uint64_t death = 0; death < deaths; ++death) {
      REQUIRE(cluster.counts_beyond(from + random.below(job.iterations / 4)));
      test::sleep_ms(random.below(30));
      master->signal(SIGKILL);
      REQUIRE(master->wait() == 128 + SIGKILL);
      const std::uint64_t seen = cluster.counted().value();
      test::sleep_ms(random.below(1500));
      const char* resume = random.below(2) == 0 ? "--resume" : "--resume=auto";
      master = &cluster.start_master(test::joined(flags, Arguments{resume}));
      REQUIRE(master->says("training starts"));
      from = test::resumed_from(*master);
      CHECK(from <= seen);
      CHECK(from + job.lost_max >= seen);
    }
    test::require_ending(cluster, *master, {job.iterations, job.contributors_max, from});
    for (Process& worker : cluster.workers()) CHECK(worker.wait() == 0);
  }
}

TEST_CASE("a master killed after its last merge is started again: it ends, and so do its workers") {
  Cluster cluster(100);
  const test::ReservedPort reserved;
  const std::string port = reserved.text();
  Process& first = cluster.start_master({"--port", port, "--workers", "1"});
  cluster.start_worker(cluster.address());
  REQUIRE(cluster.counts_beyond(99));
  first.signal(SIGKILL);
  first.wait();
  Process& second = cluster.start_master({"--port", port, "--workers", "1", "--resume=auto"});
  test::require_ending(cluster, second, {100, 1, 100});
  CHECK(std::filesystem::exists(cluster.file("snap_iter_100.caffemodel")));
}

TEST_CASE("a frozen master that wakes up beside its successor ends with 75 and leaves no trace") {
  for (const int round : test::rounds(1)) {
    Random random = Random::derive(test::seed(), {2, static_cast<std::uint64_t>(round)});
    const DyingJob& job = kDyingJobs[static_cast<std::size_t>(round) % std::size(kDyingJobs)];
    CAPTURE(test::seed(), round, job.name);
    Cluster cluster(job.iterations);
    const Arguments flags = test::joined(job.flags, Arguments{"--workers", "2"});
    Process& old = cluster.start_master(flags);
    Process& lost = cluster.start_worker(cluster.address(), {"--workers", "2"});
    REQUIRE(cluster.counts_beyond(random.below(job.iterations / 4)));
    test::sleep_ms(random.below(30));
    old.signal(SIGSTOP);
    Process& successor = cluster.start_master(test::joined(flags, Arguments{"--resume"}));
    const std::string address = cluster.address();
    const std::uint64_t from = test::resumed_from(successor);
    // It wakes up while the successor waits for workers, begins, or is well under way.
    if (round % 2 == 0) old.signal(SIGCONT);
    Process& worker = cluster.start_worker(address, {"--workers", "2"});
    if (round % 2 == 1) {
      REQUIRE(cluster.counts_beyond(from + random.below(200)));
      old.signal(SIGCONT);
    }
    const auto code = old.wait();
    INFO("old: " << old.errors());
    CHECK(code == 75);
    CHECK(old.output().empty());
    CHECK(lost.running());  // It looks for another master; this test has none for it.
    lost.signal(SIGTERM);
    CHECK(lost.wait() == 0);
    test::require_ending(cluster, successor, {job.iterations, job.contributors_max, from});
    CHECK(worker.wait() == 0);
  }
}

TEST_CASE("a second master beside a healthy one ends with 75 and names it") {
  Cluster cluster(1000000);
  Process& first = cluster.start_master({"--workers", "2"});
  const std::string address = cluster.address();
  cluster.start_worker(address, {"--workers", "2"});
  REQUIRE(cluster.counts_beyond(10));
  for (const char* resume : {"", "--resume", "--resume=auto"}) {
    Arguments flags{"--workers", "2"};
    if (*resume != '\0') flags.emplace_back(resume);
    Process& second = cluster.start_master(flags);
    const auto code = second.wait();
    INFO(second.errors());
    CHECK(code == 75);
    CHECK(second.output().empty());
    CHECK(second.errors().find("/" + std::to_string(first.id()) + " ") != std::string::npos);
  }
  std::optional<std::uint64_t> seen;
  while (!seen) seen = cluster.counted();
  CHECK(cluster.counts_beyond(*seen + 100));
  first.signal(SIGTERM);
  REQUIRE(first.wait() == 0);
  const std::uint64_t iterations = Cluster::result(first)["iterations"];
  CHECK(iterations > *seen + 100);
  test::require_ending(cluster, first, {iterations, 1, 0});
}

TEST_CASE("--take-over replaces a master that lives") {
  Cluster cluster(8000);
  Process& first = cluster.start_master({"--workers", "1"});
  Process& lost = cluster.start_worker(cluster.address());
  REQUIRE(cluster.counts_beyond(10));
  Process& second = cluster.start_master({"--workers", "1", "--resume", "--take-over"});
  cluster.start_worker(cluster.address());
  CHECK(first.wait() == 75);
  lost.signal(SIGTERM);
  CHECK(lost.wait() == 0);
  test::require_ending(cluster, second, {8000, 1, test::resumed_from(second)});
}

TEST_CASE("a job resumed with another number of workers ends like any other") {
  Cluster cluster(1500);
  const test::ReservedPort reserved;
  const std::string port = reserved.text();
  Process& first = cluster.start_master({"--sync", "--workers", "1", "--port", port});
  cluster.start_worker(cluster.address());
  REQUIRE(cluster.counts_beyond(100));
  first.signal(SIGTERM);
  CHECK(first.wait() == 0);
  Process& second = cluster.start_master({"--sync", "--workers", "3", "--port", port, "--resume"});
  cluster.start_worker(cluster.address(), {"--workers", "3"});
  const std::uint64_t from = Cluster::result(first)["iterations"];
  CHECK(test::resumed_from(second) == from);
  test::require_ending(cluster, second, {1500, 3, from});
}

TEST_CASE("--resume with nothing to resume is one line and exit code 65") {
  Cluster cluster(100);
  Process& master = cluster.start_master({"--workers", "1", "--resume"});
  CHECK(master.wait() == 65);
  CHECK(master.errors().find("nothing to resume") != std::string::npos);
  CHECK(master.output().empty());
}

}  // namespace speedo
