// Real programs whose peers go, or misbehave.
#include <signal.h>

#include <string>

#include "e2e/cluster.hpp"
#include "support/catch.hpp"
#include "support/free_port.hpp"

#include "stranger.hpp"

namespace speedo {

using test::Cluster;
using test::Process;
using test::Stranger;

TEST_CASE("one that is let in and says what it may not is cut, and training goes on") {
  Cluster cluster(1000000, {.own_proof = true});  // none: the stranger has none
  const test::ReservedPort reserved;
  Process& master = cluster.start_master({"--workers", "1", "--port", reserved.text()});
  Process& worker = cluster.start_worker(cluster.address());
  REQUIRE(cluster.counts_beyond(5));
  const auto kill = caf::make_error(caf::exit_reason::kill);
  const std::uint16_t port = reserved.port();
  // Each is a node of its own: CAF, late about the end of a node's connection, may take its next
  // one for gone, and what is sent there is lost.
  CHECK(Stranger().send_until_cut(port, caf::exit_msg{{}, kill}));
  CHECK(Stranger().send_until_cut(port, caf::down_msg{{}, kill}));
  CHECK(Stranger().send_until_cut(port, kill));
  CHECK(Stranger().send_until_cut(port, caf::put_atom::value, std::string("key"), 1));
  CHECK(Stranger().send_until_cut(port, StopMessage{"a master's"}));
  CHECK(Stranger().send_until_cut(port, LeaveMessage{0, 0, std::string(kMessageBytesMax, 'x')}));
  const std::uint64_t then = cluster.counted().value();
  REQUIRE(cluster.counts_beyond(then + 5));
  master.signal(SIGTERM);
  CHECK(master.wait() == 0);
  CHECK(worker.wait() == 0);
  INFO(master.errors());
  CHECK(master.errors().find("6 cut") != std::string::npos);
}

TEST_CASE("each side says in words how the other was lost") {
  Cluster cluster(1000000);
  Process& master = cluster.start_master({"--workers", "1"});
  Process& worker = cluster.start_worker(cluster.address());
  Process& other = cluster.start_worker(cluster.address());
  REQUIRE(cluster.counts_beyond(5));
  REQUIRE(other.says("admitted by"));
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

}  // namespace speedo
