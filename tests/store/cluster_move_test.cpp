// Slots that move from one primary of a Redis Cluster to another while a job uses them.

#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/store_under_test.hpp"
#include "support/poll.hpp"

namespace speedo::test {
namespace {

constexpr std::size_t kCount = 34 * kChunkElements + 5;

// A job's store over a cluster that can be asked what it met.
struct ClusterStore {
  std::shared_ptr<ClusterKeyValue> cluster;
  std::shared_ptr<ChunkedStore> store;

  explicit ClusterStore(const std::string& address) {
    std::vector<RedisOptions> nodes = cluster_options(address);
    for (RedisOptions& each : nodes) each.attempts_max = 100;
    auto opened = ClusterKeyValue::open(nodes);
    require(opened);
    cluster = *opened;
    store = std::make_shared<ChunkedStore>(
        std::make_shared<ShardedKeyValue>(cluster, part_tags("test")), "test");
  }
};

// Puts versions of a record and reads each back, until told to end.
class Busy {
 public:
  explicit Busy(ChunkedStore& store) : thread_([this, &store] { run(store); }) {}
  ~Busy() { end(); }
  void end() {
    is_over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  std::uint64_t versions() const { return versions_; }
  // Waits until that version is done, or something went wrong.
  void reach(std::uint64_t version) const {
    poll_until([&] { return versions_ >= version || is_over_; });
  }
  std::string fault;  // after end()

 private:
  void run(ChunkedStore& store) {
    while (!is_over_) {
      const std::uint64_t version = versions_ + 1;
      const auto values = pattern(kCount, version);
      if (const auto done = put(store, "weights", info_of(version, kCount), values); !done) {
        fault = done.error().message;
      }
      std::vector<float> target(kCount);
      const auto got = get(store, "weights", kModel, target);
      if (!got && fault.empty()) fault = got.error().message;
      if (got && target != values) fault = "other values came back";
      versions_ = version;
      if (!fault.empty()) is_over_ = true;
    }
  }

  std::atomic<bool> is_over_{false};
  std::atomic<std::uint64_t> versions_{0};
  std::thread thread_;
};

}  // namespace

TEST_CASE("slots move in the middle of puts and gets, and every operation finds its node",
          "[redis][cluster]") {
  RedisCluster& nodes = common_cluster();
  nodes.flush();
  ClusterStore job(nodes.address());
  Busy busy(*job.store);
  const std::vector<std::string> tags = part_tags("test");
  // Three of sixteen parts, the first with the manifests, there and back.
  for (const std::size_t part : {0U, 1U, 5U}) {
    const std::uint16_t slot = key_slot(tags[part]);
    const std::size_t home = nodes.first_owner(slot), other = (home + 1) % 3;
    for (const auto& [from, to] : {std::pair{home, other}, std::pair{other, home}}) {
      const std::uint64_t seen = busy.versions();
      nodes.begin_move(slot, from, to);
      while (nodes.move_keys(slot, from, to, 1)) {
      }
      // All that is new goes there by ASK.
      busy.reach(seen + 2);
      while (nodes.move_keys(slot, from, to, 10)) {
      }
      nodes.end_move(slot, to);
      busy.reach(seen + 4);
    }
  }
  busy.end();
  CHECK(busy.fault == "");
  const ClusterKeyValue::Counts counts = job.cluster->counts();
  INFO("moved " << counts.moved << ", asked " << counts.asked << ", try again " << counts.try_again
                << ", broken " << counts.broken << ", learned " << counts.learned);
  CHECK(counts.moved >= 6);
  CHECK(counts.asked >= 6);
  CHECK(counts.learned >= 6);
  CHECK(counts.broken == 0);
  // Who comes now finds all of it, where it is now.
  std::vector<float> target(kCount);
  const ClusterStore later(nodes.address());
  require(get(*later.store, "weights", kModel, target));
  CHECK(target == pattern(kCount, busy.versions()));
  require(later.store->clear());
  for (std::size_t i = 0; i < 3; ++i) CHECK(nodes.keys_on(i) == 0);
}

// Of a record's chunks there, keys that have moved are written on one side, others on the other.
TEST_CASE("a record, and a part of one, is written while its slot has moved in half",
          "[redis][cluster]") {
  RedisCluster& nodes = common_cluster();
  nodes.flush();
  ClusterStore job(nodes.address());
  const std::size_t part = GENERATE(0U, 5U);
  const std::uint16_t slot = key_slot(part_tags("test")[part]);
  const std::size_t home = nodes.first_owner(slot), other = (home + 1) % 3;
  std::uint64_t version = 0;
  const auto write_next = [&] {
    const auto values = pattern(kCount, ++version);
    require(put(*job.store, "weights", info_of(version, kCount), values));
    std::vector<float> target(kCount);
    require(get(*job.store, "weights", kModel, target));
    CHECK(target == values);

    const auto slot_of_part = static_cast<std::uint32_t>(7 + version % 2);
    write_part_of(*job.store, values, version, {part, slot_of_part});
  };
  // Both of the record's slots have their keys at home.
  for (int i = 0; i < 3; ++i) write_next();
  nodes.begin_move(slot, home, other);
  std::size_t moved = 0;
  while (nodes.move_keys(slot, home, other, 2)) {
    ++moved;
    for (int i = 0; i < 2; ++i) write_next();
  }
  CHECK(moved >= 3);
  nodes.end_move(slot, other);
  write_next();
  CHECK(job.cluster->counts().asked > 0);
  nodes.move(slot, other, home);
  require(job.store->clear());
}

// Its script has keys on both sides, or some that are on none.
TEST_CASE("a master's write waits until its slot has moved", "[redis][cluster]") {
  RedisCluster& nodes = common_cluster();
  nodes.flush();
  ClusterStore job(nodes.address());
  job.store->fence(3);
  require(job.store->put_blob("job", "before"));
  const std::uint16_t slot = key_slot("test");
  const std::size_t home = nodes.first_owner(slot), other = (home + 1) % 3;
  nodes.begin_move(slot, home, other);
  Result<void> done;
  std::thread writer([&] { done = job.store->put_blob("job", "after"); });
  poll_until([&] { return job.cluster->counts().try_again >= 2; });
  while (nodes.move_keys(slot, home, other, 10)) {
  }
  nodes.end_move(slot, other);
  writer.join();
  require(done);
  CHECK(*job.store->get_blob("job") == "after");
  nodes.move(slot, other, home);
}

TEST_CASE("keys are listed that move to a node that was asked before", "[redis][cluster]") {
  RedisCluster& nodes = common_cluster();
  nodes.flush();
  const ClusterStore job(nodes.address());
  constexpr std::size_t kKeys = 300;
  for (std::size_t i = 0; i < kKeys; ++i) {
    require(job.store->put_blob("b" + std::to_string(i), "x"));
  }
  const std::uint16_t slot = key_slot("test");
  const std::size_t home = nodes.first_owner(slot), other = (home + 1) % 3;
  for (const auto& [from, to] : {std::pair{home, other}, std::pair{other, home}}) {
    nodes.begin_move(slot, from, to);
    std::atomic<bool> is_over = false;
    std::thread mover([&, from = from, to = to] {
      while (nodes.move_keys(slot, from, to, 5)) {
      }
      nodes.end_move(slot, to);
      is_over = true;
    });
    while (!is_over) {
      const auto keys = job.cluster->list("speedo:{test}");
      if (!keys) FAIL_CHECK(keys.error().message);
      if (!keys) break;
      CHECK(std::set<std::string>(keys->begin(), keys->end()).size() == kKeys);
    }
    mover.join();
  }
}

}  // namespace speedo::test
