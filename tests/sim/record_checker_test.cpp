#include "sim/check/record_checker.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <speedo/store/layout.hpp>
#include <speedo/store/part_store.hpp>
#include <speedo/store/record_store.hpp>

#include "sim/proof_servers.hpp"
#include "store/chunk_range.hpp"
#include "store/chunked_store.hpp"
#include "support/catch.hpp"

#include "near_server.hpp"

namespace speedo::sim {
namespace {

constexpr std::uint64_t kTerm = 7, kWorker = 2;

// A server whose every operation the checker hears of.
struct CheckedServer {
  EventQueue queue;
  StoreServer server{queue};
  Violations violations;
  RecordChecker checker{server.map(), "job", queue, violations};
  std::vector<std::string> set;  // keys, the manifest's last
  std::shared_ptr<KeyValue> map = std::make_shared<NearServer>(server);

  CheckedServer() {
    checker.granted(kTerm);
    server.on_done = [this](const KvOperation& operation) {
      if (operation.kind == KvOperation::Kind::kSet) set.push_back(operation.key);
      checker.done(operation);
    };
  }
  // Of two chunks.
  void contribute() {
    const std::vector<float> values(kChunkElements + 1, 1.0F);
    RecordInfo info;
    info.version = 1;
    info.worker = kWorker;
    info.element_count = values.size();
    ChunkedStore store(map, "job");
    REQUIRE(put(store, contribution_key(kTerm, kWorker), info, values));
    REQUIRE(set.size() == 3);
  }
  void erase(const std::string& key) {
    auto operation = std::make_shared<KvOperation>();
    operation->kind = KvOperation::Kind::kErase;
    operation->keys = {key};
    map->submit(operation);
  }
  void repeat_manifest() {
    KvOperation again;
    again.kind = KvOperation::Kind::kSet;
    again.key = set.back();
    checker.done(again);
  }
  std::string found() const { return violations.first(); }
};

TEST_CASE("a manifest that comes before its chunks is found") {
  CheckedServer store;
  store.contribute();
  CHECK(store.found() == "");
  CHECK(store.checker.is_whole(store.set.back()));
  store.erase(store.set.front());
  CHECK_FALSE(store.checker.is_whole(store.set.back()));
  store.repeat_manifest();
  CHECK(store.found() == "'" + store.set.back() + "' is there before its chunks");
  CHECK(std::string(store.violations.check()) == "publication");
}

TEST_CASE("chunks may be gone with what a store has lost") {
  CheckedServer store;
  store.contribute();
  store.erase(store.set.front());
  store.checker.store_lost_data();
  store.repeat_manifest();
  CHECK(store.found() == "");
}

TEST_CASE("what a worker that is gone has left is found, unless it came late") {
  CheckedServer store;
  store.contribute();
  store.checker.told_to_erase(kTerm, kWorker);
  store.checker.check_erased(kTerm, kWorker + 1);
  CHECK(store.found() == "");
  store.checker.check_erased(kTerm, kWorker);
  CHECK(store.found().ends_with("of a worker that is gone is never erased"));
  CHECK(std::string(store.violations.check()) == "erasure");

  CheckedServer late;
  late.checker.told_to_erase(kTerm, kWorker);
  late.contribute();
  late.checker.check_erased(kTerm, kWorker);
  CHECK(late.found() == "");
}

TEST_CASE("what is left behind at the end is found, whosever it is, unless it came after the end") {
  CheckedServer store;
  store.checker.told_to_erase(kTerm, kWorker);
  store.contribute();
  store.checker.granted(kTerm + 1);
  store.checker.master_ends(kTerm + 1);
  store.checker.check_end();
  CHECK(store.found().ends_with("is left behind at the end"));
  CHECK(std::string(store.violations.check()) == "erasure");

  CheckedServer late;
  late.checker.master_ends(kTerm);
  late.contribute();
  late.checker.check_end();
  CHECK(late.found() == "");
}

TEST_CASE("what is there of a contribution that was withdrawn is found") {
  CheckedServer store;
  store.contribute();
  store.checker.withdrawn(contribution_key(kTerm, kWorker - 1));
  CHECK(store.found() == "");
  store.checker.withdrawn(contribution_key(kTerm, kWorker));
  CHECK(store.found().ends_with("of a run that was given up is not erased"));
}

}  // namespace
TEST_CASE("chunks that the newest weights' manifest names stay as they are") {
  CheckedServer server;
  ChunkedStore store(server.map, "job");
  RecordInfo info;
  for (info.version = 1; info.version < 9; ++info.version) {
    REQUIRE(put(store, weights_key(), info, std::vector<float>(3, 1.0F)));
  }
  CHECK(server.violations.first() == "");
  const std::string newest = server.set[server.set.size() - 2];
  server.erase(server.set[server.set.size() - 4]);
  CHECK(server.violations.first() == "");
  server.erase(newest);
  CHECK(server.violations.first() == "a chunk of the newest weights is replaced or erased");
}

// Weights of three chunks on two servers, of which the checker is told.
struct CopiedWeights {
  EventQueue queue;
  StoreServers servers{queue, "job", 2};
  Violations violations;
  RecordChecker checker{servers.map(), "job", queue, violations};
  ChunkedStore store{servers.shared_map(), "job"};
  std::vector<float> values = std::vector<float>(2 * kChunkElements + 1, 1.0F);
  RecordInfo info;

  CopiedWeights() {
    checker.expect_copies();
    store.fence(kTerm);
    info.version = 1;
    info.element_count = values.size();
  }
  void copy(std::size_t part) {
    const auto writer = store.write_part(part_copy_key(part, 2, weights_key()), info, {part, 0});
    for (std::size_t chunk = part; chunk < 3; chunk += 2) {
      writer->write(chunk, chunk_of(std::span<const float>(values), chunk));
    }
    REQUIRE(writer->finish());
  }
  std::string tell_set(const std::string& key) {
    KvOperation set;
    set.kind = KvOperation::Kind::kSet;
    set.key = key;
    checker.done(set);
    return violations.first();
  }
  std::string publish() {
    REQUIRE(put(store, weights_key(), info, values));
    return tell_set(RecordKeys("job", weights_key()).manifest());
  }
};

TEST_CASE("copies that parts have of the newest weights are there, and stay as they are") {
  CopiedWeights weights;
  weights.copy(0);
  const std::string key = RecordKeys("job", "part/0/of-1/weights").chunk(kTerm, 0, 1);
  SECTION("one is not there") {
    CHECK(weights.publish() == "the copy '" + key + "' of the newest weights is not there");
    CHECK(std::string(weights.violations.check()) == "publication");
  }
  SECTION("one may be lost") {
    weights.checker.store_lost_data(1);
    CHECK(weights.publish() == "");
  }
  SECTION("one is replaced") {
    weights.copy(1);
    CHECK(weights.publish() == "");
    CHECK(weights.tell_set(key) == "");
    weights.info.version = 2;
    weights.copy(1);
    CHECK(weights.tell_set(key) == "a copy of the newest weights is replaced or erased");
  }
  SECTION("one is erased") {
    weights.copy(1);
    CHECK(weights.publish() == "");
    KvOperation erase;
    erase.kind = KvOperation::Kind::kErase;
    erase.keys = {key};
    weights.checker.done(erase);
    CHECK(weights.violations.first() == "a copy of the newest weights is replaced or erased");
  }
}

TEST_CASE("chunks of the newest weights that a server has lost come back as they were") {
  CheckedServer server;
  ChunkedStore store(server.map, "job");
  RecordInfo info;
  info.version = 1;
  REQUIRE(put(store, weights_key(), info, std::vector<float>(3, 1.0F)));
  const std::string chunk = server.set.front();
  const KvPtr value = get_whole(chunk);
  server.map->submit(value);
  const auto set_again = [&](std::string bytes) {
    auto again = std::make_shared<KvOperation>();
    again->kind = KvOperation::Kind::kSet;
    again->key = chunk;
    again->head = std::move(bytes);
    server.map->submit(again);
    return server.violations.first();
  };
  const std::string of_another = std::string(kChunkHeadBytes, '\0') + value->text;
  SECTION("of a server without manifests") {
    server.checker.store_lost_data(1);
    CHECK(set_again(value->text) == "");
    CHECK(set_again(of_another) == "a chunk of the newest weights is replaced or erased");
  }
  SECTION("of the first server, which may show an older manifest") {
    server.checker.store_lost_data(0);
    CHECK(set_again(of_another) == "");
  }
}

}  // namespace speedo::sim
