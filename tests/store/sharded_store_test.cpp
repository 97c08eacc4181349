// A job that is spread over several servers, of which each may lose what it holds.

#include <memory>
#include <string>
#include <vector>

#include "store/chunked_store.hpp"
#include "store/memory_key_value.hpp"
#include <speedo/store/store_address.hpp>

#include "store/chunk_range.hpp"
#include "store/mastership.hpp"
#include "store/record_codec.hpp"
#include "store/sharded_key_value.hpp"
#include "store/store_under_test.hpp"
#include "store/striking_map.hpp"

namespace speedo::test {
namespace {

constexpr std::size_t kSpreadCount = 5 * kChunkElements + 100;

struct Spread {
  std::vector<std::shared_ptr<MemoryKeyValue>> servers;
  std::shared_ptr<KeyValue> first;  // the first one, or what stands before it

  explicit Spread(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) servers.push_back(std::make_shared<MemoryKeyValue>());
    first = servers.front();
  }
  ChunkedStore store(std::size_t count = 0) const {
    std::vector<std::shared_ptr<KeyValue>> maps(servers.begin(), servers.end());
    maps.front() = first;
    if (count != 0) maps.resize(count);
    if (maps.size() == 1) return {first, "job"};
    return {std::make_shared<ShardedKeyValue>(std::move(maps), "job"), "job"};
  }
  std::size_t keys_on(std::size_t server) const { return servers[server]->image().size(); }
};

}  // namespace

TEST_CASE("a job is known by the keys of its records on each server, and by no other key") {
  const Spread spread(3);
  ChunkedStore store = spread.store();
  require(store.put_blob("note", "text"));
  require(put(store, weights_key(), info_of(1, kSpreadCount), pattern(kSpreadCount, 1)));
  MasterClaim claim;
  claim.holder = "somebody";
  claim.time = std::chrono::minutes(1);
  require(store.claim_master(claim));
  std::size_t found = 0;
  for (const auto& server : spread.servers) {
    for (const auto& [key, value] : server->image()) {
      const bool is_mastership = key == term_key("job") || key == lease_key("job");
      INFO(key);
      CHECK(job_of_record_key(key) == (is_mastership ? "" : "job"));
      found += is_mastership ? 0 : 1;
    }
  }
  CHECK(found > 3);
  for (const char* other : {"", "speedo:{", "speedo:{job", "{job}:x", "other:{job}:x"}) {
    CHECK(job_of_record_key(other).empty());
  }
}

TEST_CASE("a record's chunks go round the servers, all else to the first", "[store][sharded]") {
  const Spread spread(3);
  ChunkedStore store = spread.store();
  require(store.put_blob("text", "words"));
  require(put(store, "weights", info_of(1, kSpreadCount), pattern(kSpreadCount, 1)));
  CHECK(spread.keys_on(0) == 2 + 2);  // the blob, the manifest
  CHECK(spread.keys_on(1) == 2);
  CHECK(spread.keys_on(2) == 2);
  for (const auto& [key, entry] : spread.servers[2]->image()) {
    CHECK(key.starts_with("speedo:{job:2}:weights:"));
  }
  std::vector<float> target(kSpreadCount);
  require(get(store, "weights", kModel, target));
  CHECK(target == pattern(kSpreadCount, 1));
  require(store.clear());
  for (std::size_t server = 0; server < 3; ++server) CHECK(spread.keys_on(server) == 0);
}

TEST_CASE("a record is not read with fewer servers than it has, or with more", "[store][sharded]") {
  const Spread spread(3);
  ChunkedStore store = spread.store();
  require(put(store, "weights", info_of(1, kSpreadCount), pattern(kSpreadCount, 1)));
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}}) {
    ChunkedStore fewer = spread.store(count);
    const auto read = fewer.read("weights");
    REQUIRE_FALSE(read);
    CHECK(read.error().code == ErrorCode::kMismatch);
    CHECK_THAT(read.error().message, Catch::Contains("spread over 3 servers"));
    CHECK_THAT(read.error().message, Catch::Contains("--redis"));
    CHECK(code_of(put(fewer, "weights", info_of(2, 9), pattern(9, 2))) == ErrorCode::kMismatch);
  }
  ChunkedStore alone = spread.store(1);
  require(alone.clear());
  require(put(alone, "weights", info_of(1, 9), pattern(9, 1)));
  CHECK(code_of(store.read("weights")) == ErrorCode::kMismatch);
}

TEST_CASE("servers in another order than the job's are told", "[store][sharded]") {
  Spread spread(3);
  ChunkedStore store = spread.store();
  require(store.check_places());
  require(put(store, "weights", info_of(1, kSpreadCount), pattern(kSpreadCount, 1)));
  require(store.check_places());
  std::swap(spread.servers[0], spread.servers[2]);
  spread.first = spread.servers[0];
  ChunkedStore swapped = spread.store();
  const auto places = swapped.check_places();
  REQUIRE_FALSE(places);
  CHECK(places.error().code == ErrorCode::kMismatch);
  CHECK_THAT(places.error().message, Catch::Contains("server 1 of --redis has what the job keeps "
                                                     "on its server 3"));
  // Who was refused has left its claim there, which is no record.
  MasterClaim claim;
  claim.holder = "m";
  claim.time = std::chrono::seconds(1);
  REQUIRE(ChunkedStore(spread.servers[1], "job").claim_master(claim).value().granted);
  std::swap(spread.servers[0], spread.servers[2]);
  spread.first = spread.servers[0];
  require(spread.store().check_places());
  std::swap(spread.servers[1], spread.servers[2]);
  CHECK(spread.store().check_places().error().code == ErrorCode::kMismatch);
  // Another job's are nobody's business.
  std::vector<std::shared_ptr<KeyValue>> maps(spread.servers.begin(), spread.servers.end());
  require(ShardedKeyValue(std::move(maps), "jo").check_places());
}

TEST_CASE("a server that loses its data while a record is written gets it again",
          "[store][sharded]") {
  const std::size_t loser = GENERATE(0U, 1U, 2U);
  CAPTURE(loser);
  Spread spread(3);
  const auto sets_manifest = [](const KvOperation& operation) {
    return operation.kind == KvOperation::Kind::kSet && operation.key == "speedo:{job}:weights:m";
  };
  const auto striking = std::make_shared<StrikingMap>(
      spread.servers[0], sets_manifest, [&] { spread.servers[loser]->set_image({}); });
  spread.first = striking;
  ChunkedStore store = spread.store();
  require(put(store, "weights", info_of(1, kSpreadCount), pattern(kSpreadCount, 1)));
  REQUIRE(striking->has_struck());
  std::vector<float> target(kSpreadCount);
  require(get(store, "weights", kModel, target));
  CHECK(target == pattern(kSpreadCount, 1));
}

TEST_CASE("a record of which a server has lost its part is seen not to be whole",
          "[store][sharded]") {
  const Spread spread(3);
  ChunkedStore store = spread.store();
  require(put(store, "weights", info_of(1, kSpreadCount), pattern(kSpreadCount, 1)));
  CHECK(*(*store.read("weights"))->is_whole());
  spread.servers[1]->set_image({});
  CHECK_FALSE(*(*store.read("weights"))->is_whole());
  std::vector<float> target(kSpreadCount);
  CHECK(code_of(get(store, "weights", kModel, target)) == ErrorCode::kNotFound);
  require(put(store, "weights", info_of(2, kSpreadCount), pattern(kSpreadCount, 2)));
  CHECK(*(*store.read("weights"))->is_whole());
}

// Its chunks lie there before any manifest names them.
TEST_CASE("a stale master erases nothing of its successor's on any server", "[store][sharded]") {
  const Spread spread(2);
  ChunkedStore old = spread.store(), successor = spread.store();
  old.fence(5);
  require(put(old, "weights", info_of(1, kSpreadCount), pattern(kSpreadCount, 1)));
  MasterClaim claim;
  claim.holder = "host/2";
  claim.time = std::chrono::minutes(1);
  claim.force = true;
  successor.fence(successor.claim_master(claim)->term);
  const auto values = pattern(kSpreadCount, 2);
  auto writer = successor.write("weights", info_of(2, kSpreadCount));
  for (std::size_t chunk = 0; chunk < chunk_count(kSpreadCount); ++chunk) {
    writer->write(chunk, chunk_of(std::span<const float>(values), chunk));
  }
  CHECK(code_of(old.clear()) == ErrorCode::kSuperseded);
  CHECK(code_of(old.erase("weights", kSpreadCount)) == ErrorCode::kSuperseded);
  require(writer->finish());
  std::vector<float> target(kSpreadCount);
  require(get(successor, "weights", kModel, target));
  CHECK(target == values);
}

TEST_CASE("addresses of several servers are one list, without what opens them",
          "[store][sharded]") {
  const auto three = parse_redis_addresses("one:1,redis://two:2/3,unix:///run/r.sock?db=1");
  require(three);
  CHECK(to_string(*three) == "one:1,redis://two:2/3,unix:///run/r.sock?db=1");
  CHECK(StoreAddress(to_string(*three)).text() == to_string(*three));
  CHECK(StoreAddress("redis://u:p,w@one:1").text() == "redis://one:1");
  for (const char* text : {"", ",", "one,", ",one", "one,,two", "one:1,one:1", "one,two:x",
                           "a,rediss://b/x"}) {
    CAPTURE(text);
    CHECK(code_of(parse_redis_addresses(text)) == ErrorCode::kUsage);
  }
}

}  // namespace speedo::test
