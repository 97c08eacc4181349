// A Redis Cluster that is not well, or is none, and primaries that die and are replaced.

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "store/store_under_test.hpp"
#include "support/poll.hpp"

namespace speedo::test {
namespace {

using Catch::Contains;

Error opening_error(const std::string& address) {
  std::vector<RedisOptions> nodes = cluster_options(address);
  for (RedisOptions& each : nodes) each.attempts_max = 2;
  const auto store = open_redis_store(nodes, "test");
  REQUIRE_FALSE(store.has_value());
  return store.error();
}

// Chunks with numbers below `end` that lie on a node.
std::size_t chunks_on(const RedisCluster& nodes, std::size_t node, std::size_t end) {
  const std::vector<std::string> tags = part_tags("test");
  std::size_t count = 0;
  for (std::size_t chunk = 0; chunk < end; ++chunk) {
    count += nodes.first_owner(key_slot(tags[chunk % tags.size()])) == node;
  }
  return count;
}

// A put of which the first half is on a primary, when that is killed and its replica promoted.
// `lags`: the replica has not seen any of it.
void put_through_failover(bool lags) {
  RedisCluster nodes(
      {.replicas = 1, .node_timeout_ms = 1000, .extra = "cluster-replica-validity-factor 0"});
  std::vector<RedisOptions> options = cluster_options(nodes.address());
  options.erase(options.begin());  // the nodes that are given need not be the one that is lost
  for (RedisOptions& each : options) each.attempts_max = 1000;
  const auto store = open_redis_store(options, "test");
  require(store);
  constexpr std::size_t kChunks = 40, kHalf = kChunks / 2;
  const std::size_t count = kChunks * kChunkElements;
  require(put(**store, "weights", info_of(1, count), pattern(count, 1)));
  const auto values = pattern(count, 2);
  const std::span<const float> all = values;
  if (lags) nodes.node(3).kill();
  const std::size_t arrived = nodes.keys_on(0) + chunks_on(nodes, 0, kHalf);
  auto writer = (*store)->write("weights", info_of(2, count));
  for (std::size_t chunk = 0; chunk < kHalf; ++chunk) {
    writer->write(chunk, all.subspan(chunk * kChunkElements, kChunkElements));
  }
  poll_until([&] { return nodes.keys_on(0) >= arrived; });
  nodes.node(0).kill();
  if (lags) nodes.node(3).start();
  for (std::size_t chunk = kHalf; chunk < kChunks; ++chunk) {
    writer->write(chunk, all.subspan(chunk * kChunkElements, kChunkElements));
  }
  require(writer->finish());
  CHECK(nodes.ask(3, "INFO replication").find("role:master") != std::string::npos);
  std::vector<float> target(count);
  require(get(**store, "weights", kModel, target));
  CHECK(target == values);
  CHECK(*(*(*store)->read("weights"))->is_whole());
}

// Sets something on all nodes of the common cluster, and sets it back.
class Setting {
 public:
  Setting(std::string name, const std::string& value, std::string normal)
      : name_(std::move(name)), normal_(std::move(normal)) {
    set(value);
  }
  ~Setting() { set(normal_); }

 private:
  void set(const std::string& value) {
    for (std::size_t i = 0; i < common_cluster().primaries(); ++i) {
      common_cluster().ask(i, "CONFIG SET " + name_ + " " + value);
    }
  }
  const std::string name_, normal_;
};

}  // namespace

TEST_CASE("a primary dies in the middle of a put, and its replica goes on", "[redis][cluster]") {
  put_through_failover(false);
}

TEST_CASE("a replica that has lost what its primary took is given it again", "[redis][cluster]") {
  put_through_failover(true);
}

TEST_CASE("a server that is no node of a cluster, and a node that is taken for a server",
          "[redis][cluster]") {
  const RedisServer server;
  const Error none = opening_error("redis-cluster://127.0.0.1:" + std::to_string(server.port()));
  CHECK(none.code == ErrorCode::kConfig);
  CHECK_THAT(none.message, Contains("is no node of a Redis Cluster") &&
                               Contains("redis://127.0.0.1:" + std::to_string(server.port())));
  RedisOptions node = quick_options(common_cluster().node(1).tcp_uri());
  const auto alone = open_redis_store(node, "test");
  REQUIRE_FALSE(alone);
  CHECK(alone.error().code == ErrorCode::kConfig);
  CHECK_THAT(alone.error().message, Contains("a node of a Redis Cluster of 3 primaries") &&
                                        Contains("redis-cluster://127.0.0.1:"));
}

TEST_CASE("a cluster whose slots nobody has", "[redis][cluster]") {
  RedisServer::Options options;
  options.extra = "cluster-enabled yes";
  const RedisServer lone(options);
  const Error error = opening_error("redis-cluster://127.0.0.1:" + std::to_string(lone.port()));
  CHECK(error.code == ErrorCode::kUnavailable);
  CHECK_THAT(error.message, Contains("0-16383 (16384 of 16384 in all)") &&
                                Contains("redis-cli --cluster fix") && Contains("(2 attempts)"));
}

TEST_CASE("a cluster of which no node is reached", "[redis][cluster]") {
  const ReservedPort one, two;
  const Error error = opening_error("redis-cluster://" + one.address() + "," + two.address());
  CHECK(error.code == ErrorCode::kUnavailable);
  CHECK_THAT(error.message, Contains(one.text()) && Contains(two.text()) &&
                                Contains("Connection refused"));
}

TEST_CASE("one node that answers is enough to find all", "[redis][cluster]") {
  const ReservedPort nobody;
  const std::string port = std::to_string(common_cluster().node(2).port());
  const auto store = open_redis_store(
      cluster_options("redis-cluster://" + nobody.address() + ",localhost:" + port), "test");
  require(store);
  require(put(**store, "weights", info_of(1, 8 * kChunkElements), pattern(8 * kChunkElements, 1)));
  require((*store)->clear());
}

TEST_CASE("nodes that do not say at which host they are", "[redis][cluster]") {
  const Setting setting("cluster-preferred-endpoint-type", "unknown-endpoint", "ip");
  const auto store = open_redis_store(cluster_options(common_cluster().address()), "test");
  require(store);
  const std::size_t count = 20 * kChunkElements;
  require(put(**store, "weights", info_of(1, count), pattern(count, 1)));
  const std::uint16_t slot = key_slot("test");
  const std::size_t home = common_cluster().first_owner(slot), other = (home + 1) % 3;
  common_cluster().move(slot, home, other);
  std::vector<float> target(count);
  require(get(**store, "weights", kModel, target));
  CHECK(target == pattern(count, 1));
  common_cluster().move(slot, other, home);
  require((*store)->clear());
}

TEST_CASE("a cluster with a password asks each node's connection for it", "[redis][cluster]") {
  RedisCluster nodes({.password = "hush"});
  std::vector<RedisOptions> options = cluster_options(nodes.address());
  options.resize(1);
  options[0].attempts_max = 2;
  const auto without = open_redis_store(options, "test");
  REQUIRE_FALSE(without);
  CHECK(without.error().code == ErrorCode::kRefused);
  CHECK_THAT(without.error().message, Contains("NOAUTH") && Contains("--redis-password-file"));
  options[0].credentials.password = Secret("wrong");
  CHECK(code_of(open_redis_store(options, "test")) == ErrorCode::kRefused);
  options[0].credentials.password = Secret("hush");
  const auto store = open_redis_store(options, "test");
  require(store);
  const std::size_t count = 20 * kChunkElements;
  require(put(**store, "weights", info_of(1, count), pattern(count, 1)));
  for (std::size_t i = 0; i < 3; ++i) CHECK(nodes.keys_on(i) > 0);
}

// The rights that the documents name, without those that are used when allowed.
TEST_CASE("a user with few rights uses a cluster while a slot moves", "[redis][cluster]") {
  RedisCluster& nodes = common_cluster();
  nodes.flush();
  for (std::size_t i = 0; i < 3; ++i) {
    nodes.ask(i, "ACL SETUSER few on '>pass' '~speedo:*' +@read +@write +@connection +eval "
                 "+cluster");
  }
  std::vector<RedisOptions> options = cluster_options(nodes.address());
  options[0].credentials.user = "few";
  options[0].credentials.password = Secret("pass");
  options[0].attempts_max = 100;
  const auto store = open_redis_store(options, "test");
  require(store);
  const std::uint16_t slot = key_slot(part_tags("test")[1]);
  const std::size_t home = nodes.first_owner(slot), other = (home + 1) % 3;
  const std::size_t count = 20 * kChunkElements;
  std::vector<float> target(count);
  nodes.begin_move(slot, home, other);
  for (std::uint64_t version = 1; version < 4; ++version) {
    require(put(**store, "weights", info_of(version, count), pattern(count, version)));
    require(get(**store, "weights", kModel, target));
    CHECK(target == pattern(count, version));
  }
  CHECK(nodes.ask(other, "CLUSTER COUNTKEYSINSLOT " + std::to_string(slot)) == "6");
  while (nodes.move_keys(slot, home, other, 10)) {
  }
  nodes.end_move(slot, other);
  require(get(**store, "weights", kModel, target));
  (*store)->fence(5);
  require((*store)->put_blob("job", "text"));
  require((*store)->clear());
  nodes.move(slot, other, home);
}

TEST_CASE("any primary that evicts keys is refused by name", "[redis][cluster]") {
  const std::size_t node = GENERATE(0U, 1U, 2U);
  common_cluster().ask(node, "CONFIG SET maxmemory-policy allkeys-lru");
  const Error error = opening_error(common_cluster().address());
  common_cluster().ask(node, "CONFIG SET maxmemory-policy noeviction");
  CHECK(error.code == ErrorCode::kConfig);
  CHECK_THAT(error.message, Contains(std::to_string(common_cluster().node(node).port())) &&
                                Contains("allkeys-lru"));
}

TEST_CASE("a primary that has no replica dies, and comes back", "[redis][cluster]") {
  RedisCluster nodes({.node_timeout_ms = 1000});
  const auto store = open_redis_store(cluster_options(nodes.address()), "test");
  require(store);
  const std::size_t count = 20 * kChunkElements;
  require(put(**store, "weights", info_of(1, count), pattern(count, 1)));
  nodes.node(1).kill();
  const auto unanswered = put(**store, "weights", info_of(2, count), pattern(count, 2));
  CHECK(code_of(unanswered) == ErrorCode::kUnavailable);
  CHECK_THAT(unanswered.error().message, Contains("attempts, Redis Cluster redis-cluster://"));
  // The others find out, and then serve nothing.
  while (nodes.ask(0, "CLUSTER INFO").find("cluster_state:fail") == std::string::npos) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const auto refused = (*store)->put_blob("job", "text");
  CHECK(code_of(refused) == ErrorCode::kUnavailable);
  CHECK_THAT(refused.error().message, Contains("CLUSTERDOWN") || Contains("Connection refused"));
  const Error error = opening_error(nodes.address());
  CHECK(error.code == ErrorCode::kUnavailable);
  CHECK_THAT(error.message,
             Contains("cluster_state:fail") && Contains("redis-cli --cluster check"));
  nodes.node(1).start();
  nodes.wait_until_ok();
  // What it had is gone, the manifest too if that was there.
  const auto reader = (*store)->read("weights");
  CHECK_FALSE((reader && *(*reader)->is_whole()));
  require(put(**store, "weights", info_of(2, count), pattern(count, 2)));
  std::vector<float> target(count);
  require(get(**store, "weights", kModel, target));
  CHECK(target == pattern(count, 2));
}

TEST_CASE("a program that ends does not wait for a primary that hangs", "[redis][cluster]") {
  RedisCluster nodes;
  std::vector<RedisOptions> options = cluster_options(nodes.address());
  for (RedisOptions& each : options) {
    each.attempts_max = 1000;
    each.command_timeout = std::chrono::milliseconds(500);
  }
  const auto store = open_redis_store(options, "test");
  require(store);
  const std::size_t owner = nodes.first_owner(key_slot("test"));
  nodes.node(owner).pause();
  Result<void> done;
  std::thread writer([&] { done = (*store)->put_blob("job", "text"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto begin = std::chrono::steady_clock::now();
  (*store)->stop_waiting();
  writer.join();
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
  REQUIRE_FALSE(done);
  CHECK(is_transient(done.error().code));
  nodes.node(owner).resume();
}

}  // namespace speedo::test
