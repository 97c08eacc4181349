// Workers that die, freeze, come late and come early, as processes.
#include <signal.h>

#include <cstdlib>

#include "support/catch.hpp"
#include "support/free_port.hpp"

#include <speedo/base/random.hpp>

#include "cluster.hpp"

namespace speedo {
namespace {

using test::Cluster;
using test::Process;

bool is_long() { return std::getenv("SPEEDO_LONG") != nullptr; }

std::uint64_t seed() {
  const char* given = std::getenv("SPEEDO_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 20261121;
}

// Training reached its end, every merge counts once, and everybody else went in peace.
void require_complete(Cluster& cluster, Process& master, std::uint64_t iterations, bool sync) {
  const auto code = master.wait();
  INFO("master: " << master.errors());
  REQUIRE(code == 0);
  const auto result = Cluster::result(master);
  CHECK(result["iterations"] == iterations);
  CHECK(cluster.stored_version() == iterations);
  CHECK(result["merges"] == iterations);
  CHECK(result["contributions"] >= iterations);
  CHECK(result["contributions"] <= (sync ? 3 : 1) * iterations);
  for (Process& worker : cluster.workers()) {
    const auto end = worker.wait(std::chrono::seconds{10});
    INFO("worker: " << worker.errors());
    CHECK((end == 0 || end == 128 + SIGKILL));
  }
}

}  // namespace

TEST_CASE("kill -9 of one of three workers at a random moment") {
  const int rounds = is_long() ? 20 : 3;
  for (int round = 0; round < rounds; ++round) {
    Random random = Random::derive(seed(), {static_cast<std::uint64_t>(round)});
    const bool sync = round % 2 == 1;
    const std::uint64_t iterations = sync ? 1500 : 4000;
    const std::chrono::milliseconds moment{random.below(600)};
    CAPTURE(seed(), round, sync, moment.count());
    Cluster cluster(static_cast<int>(iterations));
    std::vector<std::string> flags{"--workers", "3"};
    if (sync) flags.emplace_back("--sync");
    Process& master = cluster.start_master(flags);
    const std::string address = cluster.address();
    for (int i = 0; i < 3; ++i) cluster.start_worker(address);
    // Half of the kills come while workers still join.
    if (random.below(2) == 0) REQUIRE(master.says("training starts"));
    std::this_thread::sleep_for(moment);
    auto victim = cluster.workers().begin();
    std::advance(victim, random.below(3));
    victim->signal(SIGKILL);
    CHECK(victim->wait() == 128 + SIGKILL);
    // The job asked for three to begin; if the victim died before that, another takes its place.
    if (!master.says("training starts", std::chrono::seconds{2})) cluster.start_worker(address);
    require_complete(cluster, master, iterations, sync);
  }
}

TEST_CASE("a frozen worker does not hold up a sync round for long") {
  Cluster cluster(1000000);
  Process& master = cluster.start_master({"--workers", "2", "--sync"});
  const std::string address = cluster.address();
  cluster.start_worker(address);
  Process& frozen = cluster.start_worker(address);
  REQUIRE(master.says("training starts"));
  frozen.signal(SIGSTOP);
  CHECK(master.says("is gone", std::chrono::seconds{15}));
  const std::uint64_t version = cluster.stored_version();
  std::this_thread::sleep_for(std::chrono::seconds{1});
  CHECK(cluster.stored_version() > version);
  // It comes back as a new life.
  frozen.signal(SIGCONT);
  CHECK(master.says("worker 2 (", std::chrono::seconds{15}));
  master.signal(SIGTERM);
  CHECK(master.wait() == 0);
  const auto end = frozen.wait(std::chrono::seconds{10});
  INFO("frozen: " << frozen.errors() << "master: " << master.errors());
  CHECK(end == 0);
}

TEST_CASE("a worker that joins late takes part; workers may be first, the master last") {
  Cluster cluster(1000000);
  const std::string port = std::to_string(test::free_port());
  Process& early = cluster.start_worker("127.0.0.1:" + port);
  REQUIRE(early.says("attempt"));
  Process& master = cluster.start_master({"--workers", "1", "--port", port});
  REQUIRE(master.says("training starts"));
  Process& late = cluster.start_worker(cluster.address(), {"--workers", "2"});
  REQUIRE(master.says("3 alive"));
  const std::uint64_t version = cluster.stored_version();
  std::this_thread::sleep_for(std::chrono::milliseconds{500});
  CHECK(cluster.stored_version() > version);
  // All three contribute: each has its own key.
  const auto store = cluster.store();
  for (std::uint64_t worker = 0; worker < 3; ++worker) {
    CHECK(store->read(contribution_key(worker)));
  }
  late.signal(SIGTERM);  // Leaves of its own will.
  CHECK(late.wait() == 0);
  CHECK(master.says("left"));
  master.signal(SIGTERM);
  CHECK(master.wait() == 0);
  CHECK(early.wait() == 0);
  CHECK_FALSE(store->read(contribution_key(0)));
}

TEST_CASE("a master that is killed and started again goes on with its workers") {
  Cluster cluster(1000000);
  const std::string port = std::to_string(test::free_port());
  Process& first = cluster.start_master({"--workers", "2", "--port", port});
  const std::string address = cluster.address();
  Process& a = cluster.start_worker(address);
  Process& b = cluster.start_worker(address);
  REQUIRE(first.says("training starts"));
  std::this_thread::sleep_for(std::chrono::milliseconds{300});
  first.signal(SIGKILL);
  REQUIRE(first.wait() == 128 + SIGKILL);
  const std::uint64_t version = cluster.stored_version();
  REQUIRE(version > 0);
  Process& second = cluster.start_master({"--workers", "2", "--port", port, "--resume"});
  REQUIRE(second.says("training starts"));
  std::this_thread::sleep_for(std::chrono::milliseconds{300});
  CHECK(cluster.stored_version() > version);
  second.signal(SIGTERM);
  CHECK(second.wait() == 0);
  CHECK(a.wait() == 0);
  CHECK(b.wait() == 0);
}

TEST_CASE("a redis-server that loses its data in the middle does not end training") {
  Cluster cluster(1000000);
  Process& master = cluster.start_master({"--workers", "1"});
  Process& worker = cluster.start_worker(cluster.address());
  REQUIRE(master.says("training starts"));
  std::this_thread::sleep_for(std::chrono::milliseconds{300});
  cluster.redis().restart();
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t version = 0;
  while (std::chrono::steady_clock::now() - start < std::chrono::seconds{20}) {
    const auto weights = cluster.store()->read(weights_key());
    const std::uint64_t now = weights ? (*weights)->info().version : 0;
    if (version != 0 && now > version) break;
    version = std::max(version, now);
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
  }
  CHECK(version > 0);
  REQUIRE(master.running());
  Process& late = cluster.start_worker(cluster.address());
  CHECK(master.says("2 alive"));  // The job can be read again, too.
  master.signal(SIGTERM);
  CHECK(master.wait() == 0);
  CHECK(worker.wait() == 0);
  CHECK(late.wait() == 0);
}

}  // namespace speedo
