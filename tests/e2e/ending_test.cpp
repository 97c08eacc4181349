// How masters and workers end: at the end, by signals, by errors.
#include <signal.h>

#include "support/catch.hpp"
#include "support/free_port.hpp"
#include "support/poll.hpp"

#include "cluster.hpp"

namespace speedo {
namespace {

using test::Cluster;
using test::Process;

std::vector<std::filesystem::path> snapshots(const Cluster& cluster) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(cluster.file("."))) {
    if (entry.path().filename().string().starts_with("snap_iter")) found.push_back(entry.path());
  }
  return found;
}

}  // namespace

TEST_CASE("SIGTERM ends a master with a snapshot, its workers, and leaves nothing behind") {
  for (const int number : {SIGTERM, SIGINT}) {
    Cluster cluster(1000000);
    Process& master = cluster.start_master({"--workers", "2", "--sync"});
    Process& workers = cluster.start_worker(cluster.address(), {"--workers", "2"});
    REQUIRE(cluster.counts_beyond(3));
    master.signal(number);
    const auto code = master.wait();
    INFO(master.errors());
    REQUIRE(code == 0);
    CHECK(workers.wait() == 0);
    const auto result = Cluster::result(master);
    const std::string iteration = std::to_string(result["iterations"].get<std::uint64_t>());
    CHECK(std::filesystem::exists(cluster.file("snap_iter_" + iteration + ".caffemodel")));
    CHECK(std::filesystem::exists(cluster.file("snap_iter_" + iteration + ".solverstate")));
    for (const auto& path : snapshots(cluster)) {  // No temporary files.
      CHECK(path.filename().string().starts_with("snap_iter_" + iteration + "."));
    }
    CHECK(cluster.counted() == result["iterations"]);
    CHECK(cluster.worker_keys() == 0);
  }
}

TEST_CASE("the second signal ends a master at once") {
  Cluster cluster(1000000);
  Process& master = cluster.start_master({"--workers", "1"});
  cluster.address();
  cluster.redis().pause();  // A clean end would have to wait for it.
  master.signal_and_wait(SIGTERM);
  CHECK(master.running());
  test::poll_until([&] {  // The first ones may come so soon that they are one with the other.
    master.signal(SIGTERM);
    return !master.running();
  });
  const auto code = master.wait();
  cluster.redis().resume();
  CHECK(code == 128 + SIGTERM);
}

TEST_CASE("a worker leaves on SIGTERM, and training goes on without it") {
  Cluster cluster(1000000);
  Process& master = cluster.start_master({"--workers", "2", "--sync"});
  Process& leaver = cluster.start_worker(cluster.address());
  Process& other = cluster.start_worker(cluster.address());
  REQUIRE(master.says("training starts"));
  leaver.signal(SIGTERM);
  CHECK(leaver.wait() == 0);
  CHECK(master.says("left"));
  CHECK(cluster.counts_beyond(cluster.counted().value() + 10));
  master.signal(SIGTERM);
  CHECK(master.wait() == 0);
  CHECK(other.wait() == 0);
}

TEST_CASE("a port in use, a store that is not there: one line, the right exit code") {
  Cluster cluster(100);
  const test::ReservedPort reserved;
  const std::string port = reserved.text();
  Process& first = cluster.start_master({"--workers", "1", "--port", port});
  cluster.address();
  Process& second = cluster.start_master({"--workers", "1", "--port", port});
  CHECK(second.wait() == 69);
  CHECK(second.errors().find(port) != std::string::npos);
  CHECK(second.output().empty());
  first.signal(SIGKILL);
  first.wait();

  cluster.redis().kill();
  Process& third = cluster.start_master({"--workers", "1", "--store-timeout", "1"});
  CHECK(third.wait() == 69);
}

TEST_CASE("a worker that finds no master gives up when told so") {
  Cluster cluster(100);
  const test::ReservedPort silent;
  const std::string nobody = silent.address();
  Process& worker = cluster.start_worker(nobody, {"--connect-timeout", "1"});
  CHECK(worker.wait() == 69);
  CHECK(worker.errors().find(nobody) != std::string::npos);
}

}  // namespace speedo
