// Servers that a simulated job is spread over, and a process' ways to them.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/proof_servers.hpp"
#include "store/chunked_store.hpp"
#include "support/catch.hpp"

namespace speedo::sim {
namespace {

constexpr std::size_t kCount = 96;  // in chunks of 16: two a server

struct SpreadJob {
  ShortChunks chunks{16};
  EventQueue queue;
  Process process{queue};
  ProcessPlatform platform{queue, process, {.name = "master"}};
  StoreServers servers{queue, "job", 3};
  Random seeds = Random::derive(1, {});
  StoreClients clients{servers, platform, seeds, Instant{0}};
  ChunkedStore store{clients.map(), "job"};

  bool put_weights(std::uint64_t version) {
    RecordInfo info;
    info.version = version;
    return put(store, weights_key(), info, std::vector<float>(kCount, 1.0F)).has_value();
  }
  bool has_weights() {
    ChunkedStore reader(servers.shared_map(), "job");
    std::vector<float> values(kCount);
    return get(reader, weights_key(), Digest{}, values).has_value();
  }
};

}  // namespace

TEST_CASE("a job's servers share its chunks, and one that loses its own leaves no whole record") {
  SpreadJob job;
  std::set<std::string> keys;
  std::vector<int> by_server(3);
  job.servers.on_done = [&](std::size_t server, const KvOperation& operation) {
    if (operation.kind != KvOperation::Kind::kSet) return;
    by_server[server] += 1;
    keys.insert(operation.key);
  };
  std::vector<std::size_t> lost;
  job.servers.on_restart = [&](std::size_t server, bool any) {
    if (any) lost.push_back(server);
  };
  REQUIRE(job.put_weights(1));
  CHECK(by_server == std::vector{3, 2, 2});
  for (const std::string& key : keys) CHECK(key.starts_with("speedo:{job}:weights:"));
  CHECK(job.has_weights());
  const std::uint64_t before = job.servers.incarnation();
  job.servers.at(2).restart(Survives::kNothing, Instant{5});
  CHECK(lost == std::vector<std::size_t>{2});
  CHECK(job.servers.incarnation() > before);
  CHECK_FALSE(job.servers.up());
  CHECK_FALSE(job.has_weights());
}

TEST_CASE("a strike befalls a process once, at whichever server it comes to") {
  SpreadJob job;
  std::vector<std::string> struck;
  job.clients.strike_at_operation(
      3, [&](const KvOperation& operation) { struck.push_back(operation.key); });
  REQUIRE(job.put_weights(1));
  CHECK(struck.size() == 1);
  job.clients.strike_at_set("speedo:{job}:weights:m", [&](const KvOperation& operation) {
    struck.push_back(operation.key);
  });
  REQUIRE(job.put_weights(2));
  REQUIRE(job.put_weights(3));
  REQUIRE(struck.size() == 2);
  CHECK(struck[1] == "speedo:{job}:weights:m");
  job.clients.strike_at_operation(0, [&](const KvOperation&) { struck.clear(); });
  job.clients.cancel_strike();
  REQUIRE(job.put_weights(4));
  CHECK(struck.size() == 2);
}

TEST_CASE("whatever a process reads, its watcher finds there still, before a server loses it") {
  SpreadJob job;
  REQUIRE(job.put_weights(1));
  int reads = 0, whole = 0;
  job.clients.on_read = [&] {
    reads += 1;
    whole += job.has_weights() ? 1 : 0;
  };
  REQUIRE(job.store.read(weights_key()));
  CHECK(reads == 1);
  std::vector<float> values(kCount);
  REQUIRE(get(job.store, weights_key(), Digest{}, values));
  CHECK(reads == 8);  // the manifest again, and six chunks
  CHECK(whole == reads);
  job.servers.on_restart = [](std::size_t, bool) {};
  job.servers.at(0).restart(Survives::kNothing, Instant{0});
  REQUIRE_FALSE(job.store.read(weights_key()));
  CHECK(reads == 9);
  CHECK(whole == 8);
}

TEST_CASE("one server is enough for a job to be cut off from its store") {
  SpreadJob job;
  CHECK(job.clients.is_connected());
  job.clients.at(1).disconnect({});
  CHECK_FALSE(job.clients.is_connected());
  CHECK_FALSE(job.put_weights(1));
  job.clients.connect();
  CHECK(job.put_weights(1));
}

}  // namespace speedo::sim
