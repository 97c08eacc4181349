// Workers that die, freeze, flap, come late and come early, as processes.
#include <signal.h>

#include <cstdlib>
#include <string>

#include "support/catch.hpp"
#include "support/free_port.hpp"

#include <speedo/base/random.hpp>

#include "cluster.hpp"

namespace speedo {
namespace {

using test::Cluster;
using test::Process;

Process& any_of(std::list<Process>& workers, Random& random) {
  auto chosen = workers.begin();
  std::advance(chosen, random.below(workers.size()));
  return *chosen;
}

// What a master says of the first worker of a process, after the host's name.
std::string joined(const Process& worker) {
  return "/" + std::to_string(worker.id()) + "/0 joined";
}

// The iteration that a master names behind `text`, which it has said.
std::uint64_t iteration_after(const Process& master, const std::string& text) {
  const std::string said = master.errors();
  const std::size_t at = said.find(text);
  REQUIRE(at != std::string::npos);
  return std::strtoull(said.c_str() + at + text.size(), nullptr, 10);
}

}  // namespace

TEST_CASE("kill -9 of one of three workers at a random moment") {
  for (const int round : test::rounds(1)) {
    Random random = Random::derive(test::seed(), {6, static_cast<std::uint64_t>(round)});
    const bool sync = round % 2 == 1;
    const std::uint64_t iterations = sync ? 900 : 4000;
    CAPTURE(test::seed(), round, sync);
    Cluster cluster(iterations);
    std::vector<std::string> flags{"--workers", "3"};
    if (sync) flags.emplace_back("--sync");
    Process& master = cluster.start_master(flags);
    const std::string address = cluster.address();
    for (int i = 0; i < 3; ++i) cluster.start_worker(address);
    // Half of the kills come while workers still join.
    if (random.below(2) == 0) REQUIRE(master.says("training starts"));
    test::sleep_ms(random.below(600));
    Process& victim = any_of(cluster.workers(), random);
    victim.signal(SIGKILL);
    CHECK(victim.wait() == 128 + SIGKILL);
    for (Process& worker : cluster.workers()) {
      if (&worker != &victim) REQUIRE(master.says(joined(worker)));
    }
    // The job asked for three to begin; if the victim died before that, another takes its place.
    if (master.errors().find("training starts") == std::string::npos) cluster.start_worker(address);
    test::require_ending(cluster, master, {iterations, cluster.workers().size(), 0});
  }
}

TEST_CASE("a worker is stopped at a random moment and continued: a new incarnation, counted once") {
  for (const int round : test::rounds(1)) {
    Random random = Random::derive(test::seed(), {7, static_cast<std::uint64_t>(round)});
    const bool sync = round % 2 == 0;
    CAPTURE(test::seed(), round, sync);
    Cluster cluster(1000000);
    std::vector<std::string> flags{"--workers", "3", "--worker-timeout", "1"};
    if (sync) flags.emplace_back("--sync");
    Process& master = cluster.start_master(flags);
    const std::string address = cluster.address();
    for (int i = 0; i < 3; ++i) cluster.start_worker(address);
    REQUIRE(master.says("training starts"));
    test::sleep_ms(random.below(300));
    Process& frozen = any_of(cluster.workers(), random);
    frozen.signal(SIGSTOP);
    const std::string name = "/" + std::to_string(frozen.id()) + "/0";
    REQUIRE(master.says(name + " has not been heard of for 1 s"));
    const std::uint64_t then = cluster.counted().value();
    CHECK(cluster.counts_beyond(then + 10));  // The others are not held up.
    test::sleep_ms(random.below(1000));
    frozen.signal(SIGCONT);
    CHECK(master.says("4 joined so far"));
    CHECK(cluster.counts_beyond(cluster.counted().value() + 10));
    master.signal(SIGTERM);
    REQUIRE(master.wait() == 0);
    const std::uint64_t iterations = Cluster::result(master)["iterations"];
    test::require_ending(cluster, master, {iterations, 3, 0});
    CHECK(frozen.wait() == 0);
  }
}

TEST_CASE("a short stop costs no incarnation") {
  Cluster cluster(1000000);
  Process& master = cluster.start_master({"--workers", "2", "--sync", "--worker-timeout", "60"});
  Process& workers = cluster.start_worker(cluster.address(), {"--workers", "2"});
  REQUIRE(cluster.counts_beyond(10));
  workers.signal(SIGSTOP);
  test::sleep_ms(1500);
  workers.signal(SIGCONT);
  CHECK(cluster.counts_beyond(cluster.counted().value() + 10));
  master.signal(SIGTERM);
  CHECK(master.wait() == 0);
  CHECK(master.errors().find("3 joined so far") == std::string::npos);
  CHECK(workers.wait() == 0);
}

TEST_CASE("a master's own sleep, longer than --worker-timeout, is nobody's fault") {
  Cluster cluster(1000000);
  Process& master = cluster.start_master({"--workers", "2", "--sync", "--worker-timeout", "3"});
  Process& workers = cluster.start_worker(cluster.address(), {"--workers", "2"});
  REQUIRE(cluster.counts_beyond(10));
  master.signal(SIGSTOP);
  test::sleep_ms(4000);
  master.signal(SIGCONT);
  CHECK(master.says("this master slept for"));
  CHECK(cluster.counts_beyond(cluster.counted().value() + 10));
  master.signal(SIGTERM);
  CHECK(master.wait() == 0);
  CHECK(master.errors().find("has not been heard of") == std::string::npos);
  CHECK(workers.wait() == 0);
}

TEST_CASE("workers of a host that come and go all the time are kept out; the others go on") {
  for (const int round : test::rounds(1)) {
    Random random = Random::derive(test::seed(), {8, static_cast<std::uint64_t>(round)});
    CAPTURE(test::seed(), round);
    const bool sync = round % 2 == 0;
    Cluster cluster(1000000);
    std::vector<std::string> flags{"--workers", "1"};
    if (sync) flags.emplace_back("--sync");
    Process& master = cluster.start_master(flags);
    const std::string address = cluster.address();
    cluster.start_worker(address, {"--host", "steady"});
    REQUIRE(cluster.counts_beyond(10));
    for (int incarnation = 0; incarnation < 12; ++incarnation) {
      Process& flapping = cluster.start_worker(address, {"--host", "flapping"});
      test::sleep_ms(random.below(80));
      flapping.signal(SIGKILL);
      flapping.wait();
    }
    CHECK(cluster.counts_beyond(cluster.counted().value() + 10));
    // Once it stays it is taken again, sooner or later.
    Process& staying = cluster.start_worker(address, {"--host", "flapping"});
    CHECK(master.says("flapping" + joined(staying)));
    master.signal(SIGTERM);
    REQUIRE(master.wait() == 0);
    const std::uint64_t iterations = Cluster::result(master)["iterations"];
    test::require_ending(cluster, master, {iterations, 3, 0});
  }
}

TEST_CASE("MIN:MAX: more are turned away until there is room, with fewer training pauses") {
  Cluster cluster(1000000);
  Process& master = cluster.start_master({"--workers", "2:3", "--sync"});
  const std::string address = cluster.address();
  for (int i = 0; i < 3; ++i) cluster.start_worker(address);
  REQUIRE(master.says("3 alive"));
  Process& fourth = cluster.start_worker(address);
  CHECK(fourth.says("attempt"));
  CHECK(fourth.running());
  auto victims = cluster.workers().begin();
  victims->signal(SIGKILL);
  victims->wait();
  CHECK(fourth.says("admitted by"));
  for (int i = 0; i < 2; ++i) {
    ++victims;
    victims->signal(SIGKILL);
    victims->wait();
  }
  REQUIRE(master.says("training pauses at iteration "));
  cluster.start_worker(address);
  REQUIRE(master.says("training goes on at iteration "));
  const std::uint64_t paused = iteration_after(master, "training pauses at iteration ");
  // The round that was under way may have been merged.
  CHECK(iteration_after(master, "training goes on at iteration ") <= paused + 1);
  CHECK(cluster.counts_beyond(paused + 10));
  master.signal(SIGTERM);
  REQUIRE(master.wait() == 0);
  const std::uint64_t iterations = Cluster::result(master)["iterations"];
  test::require_ending(cluster, master, {iterations, 3, 0});
}

TEST_CASE("a worker that joins late takes part; workers may be first, the master last") {
  Cluster cluster(1000000);
  const test::ReservedPort reserved;
  const std::string port = reserved.text();
  Process& early = cluster.start_worker("127.0.0.1:" + port);
  REQUIRE(early.says("attempt"));
  Process& master = cluster.start_master({"--workers", "1", "--port", port});
  REQUIRE(master.says("training starts"));
  Process& late = cluster.start_worker(cluster.address(), {"--workers", "2"});
  REQUIRE(master.says("3 alive"));
  CHECK(cluster.counts_beyond(cluster.counted().value() + 10));
  late.signal(SIGTERM);  // Leaves of its own will.
  CHECK(late.wait() == 0);
  CHECK(master.says("left"));
  master.signal(SIGTERM);
  CHECK(master.wait() == 0);
  CHECK(early.wait() == 0);
  CHECK(cluster.worker_keys() == 0);
}

TEST_CASE("emulated workers do a job to its end, and none that computes beside them") {
  Cluster cluster(400);
  Process& master = cluster.start_master({"--workers", "3", "--sync"});
  const std::string address = cluster.address();
  cluster.start_worker(address, {"--emulate-compute", "5:20", "--workers", "2"});
  REQUIRE(master.says("only emulate computing"));
  Process& real = cluster.start_worker(address);
  CHECK(real.wait() != 0);
  CHECK(real.errors().find("give all of them the flag") != std::string::npos);
  cluster.start_worker(address, {"--emulate-compute", "5"});
  CHECK(master.wait() == 0);
  for (Process& worker : cluster.workers()) {
    if (&worker != &real) CHECK(worker.wait() == 0);
  }
}

}  // namespace speedo
