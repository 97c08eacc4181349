// Real programs whose actors are made to exit.
#include <signal.h>

#include <atomic>
#include <string>

#include "e2e/cluster.hpp"
#include "support/catch.hpp"
#include "support/free_port.hpp"

#include "stranger.hpp"

namespace speedo {

using test::Cluster;
using test::Process;
using test::Stranger;

TEST_CASE("speedo-master whose actor is killed ends with 70; its successor goes on at once") {
  Cluster cluster(1000000);
  const test::ReservedPort reserved;
  const std::uint16_t port = reserved.port();
  Process& master = cluster.start_master({"--workers", "1", "--port", reserved.text()});
  Process& worker = cluster.start_worker(cluster.address());
  REQUIRE(cluster.counts_beyond(5));
  Stranger stranger;
  stranger.end(stranger.reach(port), caf::make_error(caf::exit_reason::kill));
  REQUIRE(master.wait() == 70);
  INFO(master.errors());
  CHECK(master.errors().find("speedo-master: the master ended unexpectedly") != std::string::npos);
  CHECK(master.output().empty());
  CHECK(test::nobody_listens(port));

  const std::uint64_t then = cluster.counted().value();
  Process& successor =
      cluster.start_master({"--workers", "1", "--port", reserved.text(), "--resume=auto"});
  REQUIRE(cluster.counts_beyond(then + 5));
  CHECK(successor.errors().find("is held by") == std::string::npos);
  successor.signal(SIGTERM);
  CHECK(successor.wait() == 0);
  CHECK(worker.wait() == 0);
}

TEST_CASE("each side says in words how the other was lost") {
  Cluster cluster(1000000);
  Process& master = cluster.start_master({"--workers", "1"});
  Process& worker = cluster.start_worker(cluster.address());
  Process& other = cluster.start_worker(cluster.address());
  REQUIRE(cluster.counts_beyond(5));
  worker.signal(SIGKILL);
  REQUIRE(worker.wait());
  CHECK(master.says("its connection broke"));
  master.signal(SIGKILL);
  REQUIRE(master.wait());
  CHECK(other.says("its connection broke"));
  for (const Process* process : {&master, &other}) {
    CHECK(process->errors().find("exit_reason") == std::string::npos);
  }
}

TEST_CASE("speedo-worker one of whose actors is killed ends with 70") {
  Cluster cluster(100);
  Stranger stranger;
  std::atomic<bool> ended_one{false};
  const std::uint16_t port = stranger.pretend_master([&](const caf::actor& worker) {
    if (!ended_one.exchange(true)) caf::anon_send_exit(worker, caf::exit_reason::kill);
  });
  Process& workers =
      cluster.start_worker("127.0.0.1:" + std::to_string(port), {"--workers", "2"});
  REQUIRE(workers.wait() == 70);
  CHECK(workers.errors().find("ended unexpectedly") != std::string::npos);
}

}  // namespace speedo
