// Mergers beside the servers of a job: each may die, with its server or alone, and the master too;
// every iteration counts once.
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/free_port.hpp"

#include <speedo/base/random.hpp>

#include "cluster.hpp"

namespace speedo {
namespace {

using test::Arguments;
using test::Cluster;
using test::Process;

constexpr std::size_t kShards = 3;

// Weights of three chunks, one for each shard.
Cluster::Options in_shards() {
  Cluster::Options options;
  options.servers = kShards;
  options.rows = 9000;
  return options;
}

// Two who train, one merger a shard.
struct Shards {
  Cluster& cluster;
  std::string address;
  std::vector<Process*> mergers = {};

  void start(std::size_t shard) {
    Process& merger =
        cluster.start_worker(address, {"--shard=" + std::to_string(shard + 1)});
    if (mergers.size() <= shard) mergers.resize(shard + 1);
    mergers[shard] = &merger;
  }
  void start_all() {
    for (std::size_t shard = 0; shard < kShards; ++shard) start(shard);
  }
  void kill(std::size_t shard) {
    mergers[shard]->signal(SIGKILL);
    CHECK(mergers[shard]->wait() == 128 + SIGKILL);
  }
};

Arguments master_flags(bool sync) {
  Arguments flags{"--workers", "2", "--shards", std::to_string(kShards)};
  if (sync) flags.emplace_back("--sync");
  return flags;
}

// How often a master says that a merger of a shard has come.
std::size_t comings(const Process& master) {
  const std::string said = master.errors(), word = " is merged by ";
  std::size_t count = 0;
  for (std::size_t at = said.find(word); at != std::string::npos; at = said.find(word, at + 1)) {
    count += 1;
  }
  return count;
}

}  // namespace

TEST_CASE("mergers of shards die at random moments, others take their places") {
  for (const int round : test::rounds(1)) {
    Random random = Random::derive(test::seed(), {23, static_cast<std::uint64_t>(round)});
    const bool sync = random.below(2) == 0;
    const std::uint64_t iterations = sync ? 300 : 750;
    CAPTURE(test::seed(), round, sync);
    Cluster cluster(iterations, in_shards());
    Process& master = cluster.start_master(master_flags(sync));
    Shards shards{cluster, cluster.address()};

    shards.start_all();
    for (int i = 0; i < 2; ++i) cluster.start_worker(shards.address);
    for (std::uint64_t death = 0; death < 3; ++death) {
      REQUIRE(cluster.counts_beyond(death * iterations / 6 + random.below(iterations / 6)));
      test::sleep_ms(random.below(30));
      const std::size_t shard = random.below(kShards);
      shards.kill(shard);
      if (random.below(3) != 0) shards.start(shard);
    }
    test::require_ending(cluster, master, {iterations, 2, 0});
    CHECK(comings(master) >= kShards);
    CHECK(master.errors().find("; the part is merged here") != std::string::npos);
    CHECK(cluster.worker_keys() == 0);
  }
}

TEST_CASE("the server of a shard dies with all it holds, alone or together with its merger") {
  for (const int round : test::rounds(1)) {
    const bool together = round % 2 == 1;
    Random random = Random::derive(test::seed(), {24, static_cast<std::uint64_t>(round)});
    const bool sync = random.below(2) == 0;
    const std::uint64_t iterations = sync ? 300 : 750;
    CAPTURE(test::seed(), round, sync);
    Cluster cluster(iterations, in_shards());
    Process& master = cluster.start_master(master_flags(sync));
    Shards shards{cluster, cluster.address()};

    shards.start_all();
    for (int i = 0; i < 2; ++i) cluster.start_worker(shards.address);
    for (std::uint64_t death = 0; death < 2; ++death) {
      REQUIRE(cluster.counts_beyond(death * iterations / 4 + random.below(iterations / 4)));
      test::sleep_ms(random.below(30));
      const std::size_t shard = random.below(kShards);
      cluster.redis(shard).kill();
      if (together) shards.kill(shard);
      test::sleep_ms(random.below(500));
      cluster.redis(shard).start();
      if (together && random.below(2) == 0) shards.start(shard);
    }
    test::require_ending(cluster, master, {iterations, 2, 0});
    CHECK(cluster.worker_keys() == 0);
  }
}

// The report may come too late for the grace period.
TEST_CASE("SIGTERM while a shard's server is frozen: 69, and what is missing is said at once") {
  Cluster cluster(1000000, in_shards());
  Process& master = cluster.start_master(master_flags(true));
  Shards shards{cluster, cluster.address()};
  shards.start_all();
  for (int i = 0; i < 2; ++i) cluster.start_worker(shards.address);
  while (comings(master) < kShards) test::sleep_ms(10);
  REQUIRE(cluster.counts_beyond(20));
  cluster.redis(1).pause();
  master.signal(SIGTERM);
  const auto code = master.wait();
  cluster.redis(1).resume();
  INFO(master.errors());
  CHECK(code == 69);
  CHECK(master.errors().find("] the snapshot of iteration ") != std::string::npos);
}

TEST_CASE("mergers of steps die, and servers with all they hold, and each iteration counts") {
  for (const int round : test::rounds(1)) {
    Random random = Random::derive(test::seed(), {27, static_cast<std::uint64_t>(round)});
    const std::uint64_t iterations = 400;
    CAPTURE(test::seed(), round);
    Cluster cluster(iterations, in_shards());
    Arguments flags = master_flags(true);
    flags.insert(flags.end(), {"--gradient-only", "--replicated"});
    Process& master = cluster.start_master(flags);
    Shards shards{cluster, cluster.address()};

    shards.start_all();
    for (int i = 0; i < 2; ++i) cluster.start_worker(shards.address);
    for (std::uint64_t death = 0; death < 4; ++death) {
      REQUIRE(cluster.counts_beyond(death * iterations / 8 + random.below(iterations / 8)));
      test::sleep_ms(random.below(30));
      const std::size_t shard = random.below(kShards);
      if (death % 2 == 0) {
        shards.kill(shard);
        shards.start(shard);
        continue;
      }
      cluster.redis(shard).kill();
      test::sleep_ms(random.below(500));
      cluster.redis(shard).start();
    }
    test::require_ending(cluster, master, {iterations, 2, 0});
    CHECK(comings(master) >= kShards);
    CHECK(cluster.worker_keys() == 0);
  }
}

TEST_CASE("the master of a job in shards dies, its mergers serve the next") {
  for (const int round : test::rounds(1)) {
    Random random = Random::derive(test::seed(), {25, static_cast<std::uint64_t>(round)});
    const bool sync = random.below(2) == 0;
    const std::uint64_t iterations = sync ? 300 : 750;
    CAPTURE(test::seed(), round, sync);
    Cluster cluster(iterations, in_shards());
    const test::ReservedPort reserved;
    const Arguments flags = test::joined(master_flags(sync), {"--port", reserved.text()});
    Process* master = &cluster.start_master(flags);
    Shards shards{cluster, cluster.address()};

    shards.start_all();
    for (int i = 0; i < 2; ++i) cluster.start_worker(shards.address);
    REQUIRE(cluster.counts_beyond(random.below(iterations / 2)));
    test::sleep_ms(random.below(30));
    master->signal(SIGKILL);
    master->wait();
    const std::uint64_t seen = cluster.counted().value();
    master = &cluster.start_master(test::joined(flags, {"--resume"}));
    REQUIRE(master->says("goes on from iteration"));
    CHECK(test::resumed_from(*master) >= seen);
    test::require_ending(cluster, *master, {iterations, 2, test::resumed_from(*master)});
    CHECK(comings(*master) >= kShards);
    CHECK(cluster.worker_keys() == 0);
  }
}

// Momentum, and gradients that are the same whatever the weights: those say what was gone on with.
class Momentum {
 public:
  explicit Momentum(int servers) {
    Cluster::Options options = in_shards();
    options.servers = servers;
    options.solver = "snapshot: 20";
    cluster_ = std::make_unique<Cluster>(20, options);
  }
  Cluster& cluster() { return *cluster_; }

  // Trains to this iteration with one worker; what the master says.
  std::string train(std::uint64_t to, const Arguments& flags) {
    Process& master = cluster_->start_master(test::joined(
        {"--workers", "1", "--gradient-only", "--momentum", "0.5", "--max-iter",
         std::to_string(to)},
        flags));
    Process& worker = cluster_->start_worker(cluster_->address());
    INFO("master: " << master.errors());
    REQUIRE(master.wait(std::chrono::seconds{120}) == 0);
    REQUIRE(worker.wait(std::chrono::seconds{60}) == 0);
    return master.errors();
  }
  float weight() {
    const auto record = cluster_->store()->read(weights_key());
    REQUIRE(record);
    std::vector<float> values((*record)->info().element_count);
    REQUIRE(get(*cluster_->store(), weights_key(), (*record)->info().model, values));
    return values.front();
  }

 private:
  std::unique_ptr<Cluster> cluster_;
};

TEST_CASE("a job in shards goes on without them, with the solver's history") {
  Momentum unbroken(1), broken(3);
  unbroken.train(40, {});
  const Arguments in_parts{"--shards", "3"};
  const bool is_replicated = GENERATE(false, true);
  const Arguments after = is_replicated ? Arguments{"--sync", "--replicated", "--shards", "3"}
                                        : Arguments{};
  broken.train(20, in_parts);
  REQUIRE(broken.cluster().store()->read(part_key(1, checkpoint_key())));
  const std::string said = broken.train(40, test::joined(after, {"--resume"}));
  INFO(said);
  CHECK(said.find("no history") == std::string::npos);
  CHECK(broken.weight() == unbroken.weight());
  for (const std::size_t part : {0, 1, 2}) {
    CHECK_FALSE(broken.cluster().store()->read(part_key(part, checkpoint_key())));
    CHECK_FALSE(broken.cluster().store()->read(part_copy_key(part, 3, checkpoint_key())));
  }
}

TEST_CASE("of a job in shards that has lost a shard's history, files of the same iteration count") {
  Momentum unbroken(1), broken(2);
  unbroken.train(40, {});
  broken.train(20, {"--shards", "2"});
  const auto store = broken.cluster().store();
  REQUIRE(store->erase(part_key(0, checkpoint_key())));
  REQUIRE(store->erase(part_copy_key(0, 2, checkpoint_key())));
  const bool with_files = GENERATE(true, false);
  const std::string said = broken.train(40, {with_files ? "--resume=auto" : "--resume"});
  INFO(said);
  CHECK((said.find("the files, which have the solver's history") != std::string::npos) ==
        with_files);
  CHECK((said.find("has the solver's history in parts, but not all") != std::string::npos) ==
        !with_files);
  CHECK((broken.weight() == unbroken.weight()) == with_files);
}

}  // namespace speedo
