// What a new master finds in the store, whole or damaged.

#include <speedo/train/checkpoint.hpp>

#include <limits>

#include "store/chunk_range.hpp"
#include "store/record_codec.hpp"
#include "train/failing_store.hpp"
#include "train/merger_fixture.hpp"

namespace speedo::test {
namespace {

constexpr std::size_t kCount = kChunkElements + 64;

// A store with records that a master might have left.
struct Records {
  Records() {
    ParameterSlot slot;
    slot.layer = "ip";
    slot.shape = Shape({static_cast<std::int64_t>(kCount)});
    layout.add(slot);
    REQUIRE(layout.element_count() == static_cast<std::int64_t>(kCount));
  }

  // Values: the version, everywhere.
  void put_record(const std::string& key, std::uint64_t version, std::size_t histories) {
    put_values(key, version, std::vector<float>(kCount * (1 + histories), float(version)));
  }
  void put_values(const std::string& key, std::uint64_t version, const std::vector<float>& values) {
    RecordInfo info;
    info.model = model;
    info.version = version;
    info.state = "state " + std::to_string(version);
    require(put(*store, key, info, values));
  }

  // Damages a chunk, or the manifest, of what was put first under a key.
  void damage(const std::string& key, const std::string& part) {
    auto value = std::make_shared<KvOperation>();
    value->key = "speedo:{m}:" + key + part;
    require(execute(*map, value));
    auto damaged = std::make_shared<KvOperation>();
    damaged->kind = KvOperation::Kind::kSet;
    damaged->key = value->key;
    damaged->head = value->text;
    damaged->head[damaged->head.size() / 2] ^= 1;
    require(execute(*map, damaged));
  }

  Result<Checkpoint> read(bool histories) { return read_checkpoint(*store, layout, histories); }

  // The version of what is read, after checks that it is whole.
  std::uint64_t version(bool histories, std::size_t count) {
    const auto found = read(histories);
    require(found);
    const auto value = float(found->version.value);
    REQUIRE(found->session == "state " + std::to_string(found->version.value));
    REQUIRE((found->weights == std::vector<float>(kCount, value)));
    REQUIRE(found->histories.size() == count);
    for (const auto& history : found->histories) {
      REQUIRE((history == std::vector<float>(kCount, value)));
    }
    return found->version.value;
  }

  ErrorCode error(bool histories) {
    const auto found = read(histories);
    REQUIRE_FALSE(found);
    return found.error().code;
  }

  ParameterLayout layout;
  Digest model = [this] {
    ParameterSlot slot;
    slot.layer = "ip";
    slot.shape = Shape({static_cast<std::int64_t>(kCount)});
    ParameterLayout same;
    same.add(slot);
    return same.digest();
  }();
  std::shared_ptr<MemoryKeyValue> map = std::make_shared<MemoryKeyValue>();
  std::shared_ptr<RecordStore> store = std::make_shared<ChunkedStore>(map, "m");
};

}  // namespace

TEST_CASE("a record with more histories than solvers have is damaged, and takes no memory",
          "[checkpoint]") {
  Records records;
  const std::uint64_t parts = GENERATE(4, 1'000'000);
  RecordManifest manifest;
  manifest.info.model = records.model;
  manifest.info.version = 1;
  manifest.info.element_count = parts * kCount;
  for (std::size_t chunk = 0; chunk < chunk_count(manifest.info.element_count); ++chunk) {
    const std::size_t bytes = chunk_elements(manifest.info.element_count, chunk) * sizeof(float);
    manifest.chunks.push_back({.checksum = 7, .bytes = static_cast<std::uint32_t>(bytes)});
  }
  auto set = std::make_shared<KvOperation>();
  set->kind = KvOperation::Kind::kSet;
  set->key = "speedo:{m}:" + weights_key() + ":m";
  set->head = encode_manifest(manifest);
  require(execute(*records.map, set));
  REQUIRE(records.error(true) == ErrorCode::kCorrupt);
  REQUIRE(records.error(false) == ErrorCode::kCorrupt);
}

TEST_CASE("a version that no job reaches is damage", "[checkpoint]") {
  Records records;
  records.put_record(weights_key(), std::numeric_limits<std::uint64_t>::max() - GENERATE(0, 1), 0);
  REQUIRE(records.error(false) == ErrorCode::kCorrupt);
}

TEST_CASE("an empty store has no checkpoint", "[checkpoint]") {
  Records records;
  CHECK(records.error(false) == ErrorCode::kNotFound);
  CHECK(records.error(true) == ErrorCode::kNotFound);
}

TEST_CASE("the newest record that has all that is asked for", "[checkpoint]") {
  Records records;
  records.put_record(weights_key(), 7, 0);
  CHECK(records.version(false, 0) == 7);
  CHECK(records.version(true, 0) == 7);  // There never were histories.
  records.put_record(checkpoint_key(), 5, 1);
  CHECK(records.version(false, 0) == 7);
  CHECK(records.version(true, 1) == 5);
  records.put_record(weights_key(), 9, 1);  // averaged updaters
  CHECK(records.version(true, 1) == 9);
  records.put_record(checkpoint_key(), 10, 2);
  CHECK(records.version(true, 2) == 10);
  CHECK(records.version(false, 0) == 10);
}

TEST_CASE("a damaged record is passed over if the other one will do", "[checkpoint]") {
  const std::string part = GENERATE(as<std::string>(), ":s0:c0", ":s0:c1", ":m");
  Records records;
  records.put_record(weights_key(), 7, 0);
  records.put_record(checkpoint_key(), 5, 1);
  SECTION("the weights") {
    records.damage(weights_key(), part);
    CHECK(records.version(false, 0) == 5);
    CHECK(records.version(true, 1) == 5);
  }
  SECTION("the checkpoint") {
    records.damage(checkpoint_key(), part);
    CHECK(records.version(false, 0) == 7);
    // The weights alone would lose the histories without a word.
    CHECK(records.error(true) == ErrorCode::kCorrupt);
    CHECK_THAT(records.read(true).error().message, Catch::Contains(checkpoint_key()));
  }
  SECTION("both") {
    records.damage(weights_key(), part);
    records.damage(checkpoint_key(), part);
    CHECK(records.error(false) == ErrorCode::kCorrupt);
    CHECK(records.error(true) == ErrorCode::kCorrupt);
  }
}

TEST_CASE("values that are not finite are damage", "[checkpoint]") {
  Records records;
  std::vector<float> values(2 * kCount, 1.0F);
  values.back() = std::numeric_limits<float>::quiet_NaN();
  records.put_values(checkpoint_key(), 3, values);
  CHECK(records.error(true) == ErrorCode::kCorrupt);
  records.put_record(weights_key(), 2, 1);
  CHECK(records.version(true, 1) == 2);
}

TEST_CASE("records of another net, or of no whole number of arenas, are refused", "[checkpoint]") {
  Records records;
  const std::string key = GENERATE(weights_key(), checkpoint_key());
  records.put_values(key, 1, std::vector<float>(kCount + 1, 1.0F));
  CHECK(records.error(false) == ErrorCode::kCorrupt);
  records.model.low += 1;
  records.put_record(key, 2, 0);
  CHECK(records.error(false) == ErrorCode::kMismatch);
  CHECK(records.error(true) == ErrorCode::kMismatch);
}

TEST_CASE("a store that does not answer is not an empty store", "[checkpoint]") {
  Records records;
  records.put_record(weights_key(), 7, 0);
  const auto store = std::make_shared<FailingStore>(records.store);
  for (std::uint64_t k = 1; k <= 4; ++k) {
    store->fail_at(k, FailingStore::When::kBefore);
    const auto found = read_checkpoint(*store, records.layout, false);
    REQUIRE_FALSE(found);
    CHECK(found.error().code == ErrorCode::kUnavailable);
  }
}

TEST_CASE("who wants histories", "[checkpoint]") {
  CHECK(wants_histories({{.kind = UpdateKind::kGradientOnly}}));
  CHECK(wants_histories({{}, {.updater = UpdaterState::kAverage}}));
  CHECK_FALSE(wants_histories({{}, {.kind = UpdateKind::kElastic, .moving_rate = 0.5F}}));
}

}  // namespace speedo::test
