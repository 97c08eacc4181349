// Records that several programs put together, a server each: what one of them sees is what all have
// written, or nothing of it.

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/read_once.hpp"
#include "store/store_under_test.hpp"

namespace speedo::test {
namespace {

constexpr std::size_t kPartCount = 7 * kChunkElements + 100;

// Each part by a program of its own.
std::vector<WrittenPart> write_all(const StoreUnderTest& store, const std::vector<float>& values,
                                   std::uint64_t version, std::uint32_t slot) {
  std::vector<WrittenPart> parts;
  for (std::size_t part = 0; part < store->parts(); ++part) {
    const auto other = store.another();
    other->fence(5);
    parts.push_back(write_part_of(*other, values, version, {part, slot}));
  }
  return parts;
}

void require_claim(ParameterStore& store, const std::string& holder, std::uint64_t term) {
  MasterClaim claim;
  claim.holder = holder;
  claim.term = term;
  claim.time = std::chrono::seconds(1);
  const auto answer = store.claim_master(claim);
  require(answer);
  REQUIRE(answer->granted);
}

void require_stored(ParameterStore& store, const std::vector<float>& expected) {
  std::vector<float> values(expected.size());
  require(get(store, "weights", kModel, values));
  REQUIRE((values == expected));
}

}  // namespace

TEST_CASE("parts put by several programs are one record, once its manifest is there",
          "[store][parts]") {
  const std::string kind = GENERATE(from_range(store_kinds()));
  const std::size_t count = GENERATE(as<std::size_t>(), kPartCount, 100, kChunkElements);
  CAPTURE(kind, count);
  StoreUnderTest store(kind);
  store->fence(5);
  const auto first = pattern(count, 1), second = pattern(count, 2);
  require(put(*store, "weights", info_of(1, count), first));
  const auto parts = write_all(store, second, 2, 3);
  require_stored(*store, first);
  require(store->put_parts("weights", info_of(2, count), parts));
  require_stored(*store.another(), second);
  REQUIRE((*store->read("weights"))->info().version == 2);
  // A later one may leave the parts in slots that differ.
  auto third = pattern(count, 3);
  auto mixed = write_all(store, third, 3, 4);
  mixed[0] = write_part_of(*store, third, 3, {0, 7});
  require(store->put_parts("weights", info_of(3, count), mixed));
  require_stored(*store, third);
  CHECK(*store->has_put_parts("weights", info_of(3, count), mixed));
  CHECK_FALSE(*store->has_put_parts("weights", info_of(4, count), mixed));
  auto elsewhere = mixed;
  elsewhere[0].slot = 8;
  CHECK_FALSE(*store->has_put_parts("weights", info_of(3, count), elsewhere));
  elsewhere = mixed;
  elsewhere[0].checksums[0] += 1;
  CHECK_FALSE(*store->has_put_parts("weights", info_of(3, count), elsewhere));
  // And a whole put follows parts.
  require(put(*store, "weights", info_of(4, count), first));
  require_stored(*store, first);
}

TEST_CASE("a part that its server has lost is missed, and nothing else is", "[store][parts]") {
  StoreUnderTest store("two in memory");
  store->fence(5);
  const auto values = pattern(kPartCount, 1);
  const auto parts = write_all(store, values, 1, 3);
  require(store->put_parts("weights", info_of(1, kPartCount), parts));
  const RecordInfo info = (*store->read("weights"))->info();
  for (std::size_t part = 0; part < 2; ++part) {
    auto has = store->has_part("weights", info, part, parts[part]);
    require(has);
    REQUIRE(*has);
  }
  store->erase_copies("weights", kPartCount, {3, 4, std::size_t{1}});
  auto has = store->has_part("weights", info, 0, parts[0]);
  require(has);
  REQUIRE(*has);
  has = store->has_part("weights", info, 1, parts[1]);
  require(has);
  REQUIRE_FALSE(*has);
  std::vector<float> target(kPartCount);
  REQUIRE(get(*store, "weights", kModel, target).error().code == ErrorCode::kNotFound);
  // What was tried before under the same version is another part.
  write_part_of(*store, pattern(kPartCount, 2), 1, {1, 3});
  has = store->has_part("weights", info, 1, parts[1]);
  require(has);
  REQUIRE_FALSE(*has);
  // Written again, it is whole.
  REQUIRE(write_part_of(*store, values, 1, {1, 3}) == parts[1]);
  require_stored(*store, values);
}

TEST_CASE("parts of a master that was replaced make nothing visible", "[store][parts]") {
  const std::string kind = GENERATE(from_range(store_kinds()));
  CAPTURE(kind);
  StoreUnderTest store(kind);
  require_claim(*store, "first", 5);
  store->fence(5);
  const auto first = pattern(kPartCount, 1);
  require(put(*store, "weights", info_of(1, kPartCount), first));
  const auto parts = write_all(store, pattern(kPartCount, 2), 2, 3);
  store.wait_for_end_of_lease();
  const auto newer = store.another();
  require_claim(*newer, "second", 6);
  const auto put = store->put_parts("weights", info_of(2, kPartCount), parts);
  REQUIRE_FALSE(put.has_value());
  REQUIRE(put.error().code == ErrorCode::kSuperseded);
  require_stored(*newer, first);
}

namespace {

struct ServersInMemory {
  std::vector<std::shared_ptr<MemoryKeyValue>> servers;
  std::shared_ptr<KeyValue> map;
  explicit ServersInMemory(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) servers.push_back(std::make_shared<MemoryKeyValue>());
    map = std::make_shared<ShardedKeyValue>(
        std::vector<std::shared_ptr<KeyValue>>(servers.begin(), servers.end()), "test");
  }
  std::size_t copies_on(std::size_t server) const {
    const MemoryImage image = servers[server]->image();
    return static_cast<std::size_t>(std::ranges::count_if(
        image, [](const auto& each) { return each.first.find("/of-") != std::string::npos; }));
  }
};

void copy_part(ParameterStore& store, const std::vector<float>& values, std::uint64_t version,
               RecordPart where) {
  const auto writer = store.write_part(part_copy_key(where.part, store.parts(), weights_key()),
                                       info_of(version, values.size()), where);
  for (std::size_t chunk = where.part; chunk < chunk_count(values.size());
       chunk += store.parts()) {
    writer->write(chunk, chunk_of(std::span<const float>(values), chunk));
  }
  require(writer->finish());
}

Result<RecordInfo> read_copies(ParameterStore& store, std::vector<float>& values) {
  SPEEDO_ASSIGN(const auto reader, store.read_copies(weights_key()));
  return take_record(*reader, weights_key(), kModel, values);
}

}  // namespace

TEST_CASE("copies of parts are what the manifest names, and go when a newer master replaces it",
          "[store][parts]") {
  const ServersInMemory memory(3);
  ChunkedStore store(memory.map, "test");
  store.fence(5);
  const auto first = pattern(kPartCount, 1), second = pattern(kPartCount, 2);
  const auto by_another = pattern(kPartCount, 3);
  std::vector<float> found(kPartCount);
  REQUIRE_FALSE(read_copies(store, found));

  for (std::size_t part = 0; part < 3; ++part) copy_part(store, first, 1, {part, 0});
  // Wherever the whole lies.
  for (int times = 0; times < 2; ++times) {
    require(put(store, weights_key(), info_of(1, kPartCount), first));
    require(read_copies(store, found));
    CHECK((found == first));
  }

  std::vector<WrittenPart> parts;
  for (std::size_t part = 0; part < 3; ++part) {
    const auto slot = static_cast<std::uint32_t>(3 + 3 * part);
    parts.push_back(write_part_of(store, second, 2, {part, slot}));
    copy_part(store, second, 2, {part, slot});
    copy_part(store, by_another, 2, {part, slot + 1});
  }
  CHECK(read_copies(store, found)->version == 1);
  require(store.put_parts(weights_key(), info_of(2, kPartCount), parts));
  store.erase_copies(weights_key(), kPartCount, {0, 12, std::nullopt});
  const auto read = read_copies(store, found);
  require(read);
  CHECK(read->version == 2);
  CHECK((found == second));

  ChunkedStore newer(memory.map, "test");
  newer.fence(6);
  require(put(newer, weights_key(), info_of(2, kPartCount), second));
  for (std::size_t server = 0; server < 3; ++server) CHECK(memory.copies_on(server) == 0);
}

TEST_CASE("a record of a part lies wholly on the part's server", "[store][parts]") {
  const ServersInMemory memory(3);
  const auto& servers = memory.servers;
  ChunkedStore store(memory.map, "test");
  const auto values = pattern(kPartCount, 1);
  for (std::size_t part = 0; part < 3; ++part) {
    const std::string key = part_key(part, "history");
    require(put(store, key, info_of(1, kPartCount), values));
    for (std::size_t server = 0; server < 3; ++server) {
      REQUIRE((servers[server]->image().size() == 0) == (server != part));
    }
    std::vector<float> target(kPartCount);
    require(get(store, key, kModel, target));
    REQUIRE((target == values));
    require(store.erase(key, kPartCount));
    REQUIRE(servers[part]->image().size() == 0);
  }
}

}  // namespace speedo::test
