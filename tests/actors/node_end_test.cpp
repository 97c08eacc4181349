// A node whose actor ends, ends: over real sockets, with real nets and threads.
#include "actors/node.hpp"

#include <future>
#include <optional>
#include <string>
#include <utility>

#include "support/catch.hpp"
#include "support/free_port.hpp"

#include "node_cluster.hpp"
#include "stranger.hpp"
#include "unwilling_map.hpp"

namespace speedo {
namespace {

using Cluster = test::NodeCluster;
using test::Mood;
using test::StopSwitch;

// One whose stores are as willing as the test wants: the master's, or all.
struct UnwillingCluster : Cluster {
  OpenStore unwilling() {
    return
        [this](const StoreAddress&, const std::string&) -> Result<std::shared_ptr<ParameterStore>> {
          return std::shared_ptr<ParameterStore>(std::make_shared<ChunkedStore>(
              std::make_shared<test::UnwillingMap>(memory, mood), "job"));
        };
  }
  std::future<Result<MasterProgress>> start_unwilling(
      const TrainerParts& parts = test::cpu_parts()) {
    return start_master_with(unwilling(), parts);
  }

  test::SharedMood mood = std::make_shared<std::atomic<Mood>>(Mood::kWilling);
};

// Guards a test against hanging; decides nothing.
constexpr std::chrono::seconds kPatience{100};

template <class T>
T result_of(std::future<T>& future) {
  REQUIRE(future.wait_for(kPatience) == std::future_status::ready);
  return future.get();
}

// That a master is gone: with an error of the right kind, its port closed, the job free for others.
void require_gone(Cluster& cluster, std::future<Result<MasterProgress>>& master,
                  std::uint16_t port) {
  const auto progress = result_of(master);
  REQUIRE_FALSE(progress);
  CHECK(progress.error().code == ErrorCode::kInternal);
  INFO(progress.error().message);
  CHECK(progress.error().message.find("the master ended unexpectedly") != std::string::npos);
  CHECK(test::nobody_listens(port));
  MasterClaim claim;
  claim.holder = "x";
  claim.time = kLeaseTime;
  const auto answer = cluster.open()->claim_master(claim);
  REQUIRE(answer);
  CHECK(answer->granted);
  claim.term = answer->term;
  REQUIRE(cluster.open()->release_master(claim));
}

std::uint16_t port_of(Cluster& cluster) { return parse_address(cluster.master_address())->port; }

}  // namespace

TEST_CASE("a master that is made to exit while it trains is gone; another goes on from there") {
  const caf::error reason = GENERATE(caf::make_error(caf::exit_reason::kill),
                                     caf::make_error(caf::exit_reason::user_shutdown),
                                     caf::make_error(caf::exit_reason::unhandled_exception),
                                     caf::make_error(caf::sec::runtime_error));
  const test::ReservedPort reserved;
  Cluster first;
  first.options.port = reserved.port();
  first.options.session.max_iteration = 1000000;
  auto master = first.start_master();
  StopSwitch leave;
  auto worker = first.start_worker(first.master_address(), 1, &leave);
  REQUIRE(first.wait_for([&] { return first.iteration > 3; }));
  first.end_master(reason);
  require_gone(first, master, first.options.port);
  CHECK(first.snapshots.empty());

  Cluster second;
  second.memory = first.memory;
  second.options.port = first.options.port;
  second.options.resume = MasterOptions::Resume::kStore;
  second.options.session.max_iteration = 1000000;
  auto successor = second.start_master();
  REQUIRE(second.wait_for([&] { return second.iteration > first.iteration + 3; }));
  CHECK(second.first_iteration + 1 >= first.iteration);
  second.master_stop.set();
  CHECK(result_of(successor));
  CHECK(result_of(worker));
}

TEST_CASE("a master that is made to exit before its first worker came is gone") {
  Cluster cluster;
  auto master = cluster.start_master();
  const std::uint16_t port = port_of(cluster);
  cluster.end_master(caf::make_error(caf::exit_reason::kill));
  require_gone(cluster, master, port);
}

TEST_CASE("a master that is made to exit while it waits for another's lease waits no longer") {
  const test::ReservedPort reserved;
  Cluster cluster;
  cluster.options.port = reserved.port();
  MasterClaim claim;
  claim.holder = "elsewhere/1 2 3/4";
  claim.time = std::chrono::hours{1};
  REQUIRE(cluster.open()->claim_master(claim));
  auto master = cluster.start_master();
  REQUIRE(cluster.wait_for([&] { return !test::nobody_listens(cluster.options.port); }));
  cluster.end_master(caf::make_error(caf::exit_reason::user_shutdown));
  const auto refused = result_of(master);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kInternal);
  CHECK(test::nobody_listens(cluster.options.port));
}

TEST_CASE("a master that is made to exit while a snapshot is written is gone once it is") {
  Cluster cluster;
  cluster.options.session.max_iteration = 1000000;
  cluster.options.session.snapshot_interval = 5;
  std::promise<void> begun, may_go_on;
  cluster.hooks.snapshot = [&, first = true](const SnapshotParts&) mutable -> Result<void> {
    if (!std::exchange(first, false)) return {};
    begun.set_value();
    may_go_on.get_future().get();
    return {};
  };
  auto master = cluster.start_master();
  const std::string address = cluster.master_address();
  const std::uint16_t port = parse_address(address)->port;
  StopSwitch leave;
  auto worker = cluster.start_worker(address, 1, &leave);
  begun.get_future().get();
  cluster.end_master(caf::make_error(caf::exit_reason::kill));
  may_go_on.set_value();
  require_gone(cluster, master, port);
  leave.set();
  CHECK(result_of(worker));
}

TEST_CASE("a master that is made to exit while its store answers nothing is gone at once") {
  UnwillingCluster cluster;
  cluster.options.session.max_iteration = 1000000;
  auto master = cluster.start_unwilling();
  const std::string address = cluster.master_address();
  StopSwitch leave;
  auto worker = cluster.start_worker(address, 1, &leave);
  REQUIRE(cluster.wait_for([&] { return cluster.iteration > 3; }));
  *cluster.mood = Mood::kSilent;
  cluster.end_master(caf::make_error(caf::exit_reason::kill));
  const auto progress = result_of(master);
  REQUIRE_FALSE(progress);
  CHECK(progress.error().code == ErrorCode::kInternal);
  leave.set();
  CHECK(result_of(worker));
}

TEST_CASE("a master that is made to exit while it waits for its first publication is gone") {
  const test::ReservedPort reserved;
  UnwillingCluster cluster;
  cluster.options.port = reserved.port();
  cluster.options.session.store_timeout = std::chrono::hours{1};
  cluster.schedule().update.kind = UpdateKind::kGradientOnly;
  std::atomic<bool> prepared{false};
  cluster.hooks.on_training = [&](const TrainingId&, bool, std::uint64_t) -> Result<void> {
    prepared = true;
    return {};
  };
  // The last thing that is made before the publication is the backend of the merger's rule.
  TrainerParts parts = test::cpu_parts();
  parts.make_backend = [&, make = parts.make_backend] {
    if (prepared) *cluster.mood = Mood::kReadsOnly;
    return make();
  };
  auto master = cluster.start_unwilling(parts);
  REQUIRE(cluster.wait_for([&] { return *cluster.mood == Mood::kReadsOnly; }));
  cluster.end_master(caf::make_error(caf::exit_reason::kill));
  const auto progress = result_of(master);
  REQUIRE_FALSE(progress);
  CHECK(progress.error().code == ErrorCode::kInternal);
}

// With its workers' writes refused too there is nothing to merge: then only looking after the store
// tells.
TEST_CASE("a store that writes nothing for --store-timeout ends training, with a snapshot") {
  const bool workers_too = GENERATE(false, true);
  UnwillingCluster cluster;
  cluster.options.session.max_iteration = 1000000;
  cluster.options.session.store_timeout = std::chrono::seconds{1};
  auto master = cluster.start_unwilling();
  const std::string address = cluster.master_address();
  StopSwitch leave;
  auto worker =
      cluster.start_worker(address, 1, &leave, workers_too ? cluster.unwilling() : OpenStore());
  REQUIRE(cluster.wait_for([&] { return cluster.iteration > 3; }));
  *cluster.mood = Mood::kReadsOnly;
  const auto progress = result_of(master);
  REQUIRE_FALSE(progress);
  CHECK(progress.error().code == ErrorCode::kUnavailable);
  CHECK(progress.error().message.find("the test refuses writes; out of reach for") == 0);
  CHECK(cluster.snapshots.size() == 1);
  leave.set();
  CHECK(result_of(worker));
}

TEST_CASE("a process of workers one of which is made to exit ends as a whole") {
  const auto reason = GENERATE(caf::exit_reason::kill, caf::exit_reason::user_shutdown);
  const test::ReservedPort nobody;
  Cluster cluster;
  const WorkerOptions options{.master = nobody.address(),
                              .store_override = {},
                              .count = 3,
                              .name_prefix = "test",
                              .session = {.name = {}, .device = "cpu", .master = {}}};
  int seen = 0;
  const auto ended = run_worker_seen(
      {options, {}, test::cpu_parts(), cluster.open_store()}, [&](const caf::actor& worker) {
        if (++seen == 2) caf::anon_send_exit(worker, reason);
      });
  REQUIRE_FALSE(ended);
  CHECK(ended.error().code == ErrorCode::kInternal);
  INFO(ended.error().message);
  CHECK(ended.error().message.find("of this process ended unexpectedly") != std::string::npos);
}

TEST_CASE("what cannot be told to workers is refused before the port is opened") {
  Cluster cluster;
  cluster.options.job = std::string(kTextMax + 1, 'j');
  const auto refused = cluster.start_master().get();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUsage);
  CHECK(refused.error().message.find("--job") != std::string::npos);
}

}  // namespace speedo
