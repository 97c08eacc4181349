// The master's work at its store, without an actor.
#include "train/job/job_master.hpp"

#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/manual_clock.hpp"
#include "support/poll.hpp"

#include "node_cluster.hpp"
#include "store/record_codec.hpp"
#include "store/sharded_key_value.hpp"
#include "unwilling_map.hpp"

namespace speedo {
namespace {

using std::chrono::seconds;
using test::Mood;

constexpr std::uint64_t kTerm = 7;
constexpr std::uint64_t kIteration = 20;

// A JobMaster whose store is as willing as the test wants.
struct MasterAtWork {
  explicit MasterAtWork(std::shared_ptr<KeyValue> second_server = nullptr) {
    if (second_server) {
      const std::vector<std::shared_ptr<KeyValue>> servers = {map, std::move(second_server)};
      store = std::make_shared<ChunkedStore>(std::make_shared<ShardedKeyValue>(servers, "job"),
                                             "job");
    }
    MasterOptions options;
    options.spec = test::NodeCluster().options.spec;
    options.session.term = kTerm;
    options.session.snapshot_workers = true;
    const TrainerParts parts = test::cpu_parts();
    auto nets = test::value_of(JobNets::create(parts, {.job = job_spec(options),
                                                       .with_tests = false,
                                                       .initial_weights = {},
                                                       .initial_state = {}}));
    elements = static_cast<std::size_t>(nets->layout().element_count());
    model = nets->layout().digest();
    Checkpoint start = nets->take_start();
    store->fence(kTerm);
    work = test::value_of(JobMaster::create(options, parts, std::move(nets), {store},
                                            std::move(start), [this](const SnapshotParts& given) {
                                              states.clear();
                                              for (const WorkerId worker : given.workers) {
                                                states.push_back(given.state_of(worker));
                                              }
                                              return Result<void>();
                                            }));
  }

  ~MasterAtWork() {
    if (work) work->stop_waiting();
  }

  Result<Version> begin(const JobMaster::StartLimits& limits) {
    return work->begin(0, "state", limits);
  }
  void begin_or_fail() { REQUIRE(begin({.store_timeout = seconds{600}, .poll_stop = {}})); }
  // What the next look finds.
  Result<void> look() {
    now += kJobWatchInterval;
    return test::await<Result<void>>([&](auto seen) { work->watch(now, std::move(seen)); });
  }
  // As a worker leaves it behind.
  void contribute(std::uint64_t worker, std::uint64_t term = kTerm) {
    ChunkedStore store_of_worker(memory, "job");
    REQUIRE(put(store_of_worker, contribution_key(term, worker), RecordInfo{},
                std::vector<float>(elements)));
  }
  // Of a worker that adds up whole deltas: the momentum alone is its own.
  StateOfWorker state_of(std::uint64_t worker) const {
    StateOfWorker state;
    state.head.set_model_high(model.high);
    state.head.set_model_low(model.low);
    state.head.set_iteration(kIteration);
    state.head.set_worker(worker);
    state.head.set_term(kTerm);
    state.head.set_solver_type("SGD");
    state.head.set_kind(static_cast<std::uint32_t>(UpdateKind::kFullDelta));
    state.head.set_histories(elements);
    state.values.resize(elements, 0.5F);
    return state;
  }
  // What a snapshot gets of a worker that has put this.
  Result<StateOfWorker> snapshot_of(std::uint64_t worker, const StateOfWorker& put) {
    ChunkedStore store_of_worker(memory, "job");
    REQUIRE(put_state(store_of_worker, state_key(kTerm, worker), put));
    const auto written = test::await<Result<void>>([&](auto done) {
      work->snapshot(kIteration, std::move(done));
      work->finish_snapshot({kIteration, {WorkerId{worker}}});
    });
    REQUIRE(written);
    REQUIRE(states.size() == 1);
    return std::move(states.front());
  }
  std::size_t keys_handed_over() { return test::handed_over_in(*memory).size(); }
  // Once all that was ordered before is done.
  void wait_until_erased() {
    test::poll_until([&] { return keys_handed_over() == 0; });
  }
  void wait_for_refusals(int count) {
    test::poll_until([&] { return map->refusals() >= count; });
  }

  test::SharedMood mood = std::make_shared<std::atomic<Mood>>(Mood::kWilling);
  std::shared_ptr<MemoryKeyValue> memory = std::make_shared<MemoryKeyValue>();
  std::shared_ptr<test::UnwillingMap> map = std::make_shared<test::UnwillingMap>(memory, mood);
  std::shared_ptr<ParameterStore> store = std::make_shared<ChunkedStore>(map, "job");
  std::size_t elements = 0;
  Digest model;
  std::vector<Result<StateOfWorker>> states;  // that the last snapshot was given
  Instant now{0};
  std::unique_ptr<JobMaster> work;
};

}  // namespace

TEST_CASE("a store that refuses nothing but writes counts as out of reach, until it writes") {
  MasterAtWork master;
  master.begin_or_fail();
  CHECK(master.look());
  *master.mood = Mood::kReadsOnly;
  const auto refused = master.look();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUnavailable);
  CHECK(refused.error().message == "the test refuses writes");
  *master.mood = Mood::kWilling;
  CHECK(master.look());
}

TEST_CASE("one of two servers that is away is as good as both, until it is back") {
  const auto mood = std::make_shared<std::atomic<Mood>>(Mood::kWilling);
  MasterAtWork master(
      std::make_shared<test::UnwillingMap>(std::make_shared<MemoryKeyValue>(), mood));
  master.begin_or_fail();
  CHECK(master.look());
  *mood = Mood::kReadsOnly;
  const auto refused = master.look();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUnavailable);
  *mood = Mood::kWilling;
  CHECK(master.look());
}

TEST_CASE("a store that has lost the job gets it again, and is out of reach if it refuses") {
  MasterAtWork master;
  master.begin_or_fail();
  master.memory->set_image({});
  *master.mood = Mood::kReadsOnly;
  CHECK_FALSE(master.look());
  *master.mood = Mood::kWilling;
  CHECK(master.look());
  CHECK(master.store->get_blob(job_key()));
}

TEST_CASE("a store that came back with an earlier job gets this one's again") {
  MasterAtWork master;
  master.begin_or_fail();
  const std::string job = test::value_of(master.store->get_blob(job_key()));
  REQUIRE(ChunkedStore(master.memory, "job").put_blob(job_key(), "another solver and schedule"));
  CHECK(master.look());
  CHECK(test::value_of(master.store->get_blob(job_key())) == job);
}

TEST_CASE("a master that is out of date learns it when it looks after the store") {
  MasterAtWork master;
  master.begin_or_fail();
  MasterClaim claim;
  claim.holder = "another";
  claim.term_floor = kTerm + 1;
  claim.time = std::chrono::hours{1};
  REQUIRE(ChunkedStore(master.memory, "job").claim_master(claim));
  const auto looked = master.look();
  REQUIRE_FALSE(looked);
  CHECK(looked.error().code == ErrorCode::kSuperseded);
}

TEST_CASE("the start waits for a store up to --store-timeout") {
  MasterAtWork master;
  *master.mood = Mood::kReadsOnly;
  test::ManualClock clock;
  int polls = 0;
  const auto begun = master.begin({.store_timeout = seconds{600},
                                   .poll_stop =
                                       [&] {
                                         polls += 1;
                                         clock.advance(seconds{301});
                                         return std::optional<std::string>();
                                       },
                                   .clock = &clock});
  REQUIRE_FALSE(begun);
  CHECK(begun.error().code == ErrorCode::kUnavailable);
  CHECK(begun.error().message.find("the test refuses writes; out of reach for") == 0);
  CHECK(begun.error().message.find("--store-timeout") != std::string::npos);
  CHECK(polls >= 3);
}

TEST_CASE("the start goes on once the store is back") {
  MasterAtWork master;
  *master.mood = Mood::kReadsOnly;
  auto begun = std::async(std::launch::async, [&] {
    return master.begin({.store_timeout = seconds{600}, .poll_stop = {}});
  });
  master.wait_for_refusals(2);
  *master.mood = Mood::kWilling;
  CHECK(begun.get());
  CHECK(master.store->get_blob(job_key()));
}

TEST_CASE("the start ends when it is told to stop, even if the store does not answer at all") {
  MasterAtWork master;
  *master.mood = GENERATE(Mood::kReadsOnly, Mood::kSilent);
  const auto begun = master.begin({.store_timeout = seconds{600}, .poll_stop = [] {
                                     return std::optional<std::string>("SIGTERM");
                                   }});
  REQUIRE_FALSE(begun);
  CHECK(begun.error().code == ErrorCode::kUnavailable);
  CHECK(begun.error().message.find("stopped (SIGTERM)") == 0);
}

TEST_CASE("without a time-out the start waits for no store") {
  MasterAtWork master;
  *master.mood = Mood::kReadsOnly;
  const auto begun = master.begin({});
  REQUIRE_FALSE(begun);
  CHECK(begun.error().message == "the test refuses writes");
}

TEST_CASE("a snapshot takes of a worker's state only what another can go on with") {
  MasterAtWork master;
  master.begin_or_fail();
  const StateOfWorker good = master.state_of(1);
  const auto taken = master.snapshot_of(1, good);
  REQUIRE(taken);
  CHECK(taken->values == good.values);
  StateOfWorker bad = good;
  SECTION("not finite") { bad.values.back() = std::numeric_limits<float>::infinity(); }
  SECTION("another's") { bad.head.set_worker(2); }
  SECTION("of another solver") { bad.head.set_solver_type("Adam"); }
  SECTION("of another kind of update") {
    bad.head.set_kind(static_cast<std::uint32_t>(UpdateKind::kElastic));
  }
  SECTION("of a stage that the job does not have") { bad.head.set_stage(1); }
  SECTION("with arrays that it cannot have") {
    bad.head.set_residual(master.elements);
    bad.values.resize(2 * master.elements, 0.5F);
  }
  SECTION("larger than any") {
    bad.head.set_residual(9 * master.elements);
    bad.values.resize(10 * master.elements, 0.5F);
  }
  CHECK_FALSE(master.snapshot_of(1, bad));
}

TEST_CASE("what a worker that is gone has in the store is erased, contribution and local weights") {
  MasterAtWork master;
  master.begin_or_fail();
  master.contribute(1);
  REQUIRE(put(*master.store, local_key(kTerm, 1), RecordInfo{}, std::vector<float>(8)));
  REQUIRE(master.keys_handed_over() != 0);
  master.work->erase_worker(WorkerId{1});
  master.wait_until_erased();
}

TEST_CASE("what could not be erased is erased once the store is back") {
  MasterAtWork master;
  master.begin_or_fail();
  master.contribute(1);
  master.contribute(2);
  *master.mood = Mood::kReadsOnly;
  master.work->erase_worker(WorkerId{1});
  master.wait_for_refusals(1);
  master.work->erase_worker(WorkerId{2});
  CHECK_FALSE(master.look());
  REQUIRE(master.keys_handed_over() != 0);
  *master.mood = Mood::kWilling;
  CHECK(master.look());
  master.wait_until_erased();
}

TEST_CASE("at the end all that workers have put is erased, under earlier masters too") {
  MasterAtWork master;
  master.begin_or_fail();
  master.contribute(1);
  master.contribute(2, kTerm - 1);
  REQUIRE(put(*master.store, local_key(kTerm, 1), RecordInfo{}, std::vector<float>(8)));
  master.work->erase_contributions();
  CHECK(master.keys_handed_over() == 0);
  CHECK(master.store->read(weights_key()));
}

TEST_CASE("erasing keeps nobody from looking after the store") {
  MasterAtWork master;
  master.begin_or_fail();
  master.contribute(1);
  *master.mood = Mood::kSilent;
  master.work->erase_worker(WorkerId{1});
  master.map->wait_until_held();
  *master.mood = Mood::kReadsOnly;
  CHECK_FALSE(master.look());
}

}  // namespace speedo
