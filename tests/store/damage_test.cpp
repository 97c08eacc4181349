// Bytes of records, and what damage to them leads to.

#include <cstring>
#include <limits>

#include <speedo/store/layout.hpp>

#include "store/chunk_range.hpp"
#include "store/chunked_store.hpp"
#include "store/memory_key_value.hpp"
#include "store/store_under_test.hpp"
#include "support/older_manifest.hpp"

namespace speedo::test {
namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(c) >> 4U];
    text += kDigits[static_cast<unsigned char>(c) & 15U];
  }
  return text;
}

// A store whose bytes the test can read and change.
struct OpenStore {
  std::shared_ptr<MemoryKeyValue> map = std::make_shared<MemoryKeyValue>();
  ChunkedStore store{map, "j"};

  std::string value(const std::string& key) {
    auto operation = std::make_shared<KvOperation>();
    operation->kind = KvOperation::Kind::kGetWhole;
    operation->key = "speedo:{j}:" + key;
    require(execute(*map, operation));
    return operation->text;
  }
  void set(const std::string& key, const std::string& bytes) {
    auto operation = std::make_shared<KvOperation>();
    operation->kind = KvOperation::Kind::kSet;
    operation->key = "speedo:{j}:" + key;
    operation->head = bytes;
    require(execute(*map, operation));
  }
};

const std::vector<float> kValues = {1.0F, -2.0F, 0.5F};

RecordInfo golden_info() {
  RecordInfo info = info_of(0x0102030405060708, kValues.size());
  info.base_version = 3;
  info.worker = 4;
  return info;
}

}  // namespace

TEST_CASE("the bytes of records are what they were", "[store][golden]") {
  OpenStore open;
  require(put(open.store, "weights", golden_info(), kValues));
  require(open.store.put_blob("job", "text"));
  CHECK(hex(open.value("weights:s0:c0")) ==
        "53504545444f43310807060504030201"
        "0000000000000000a409f7e5f68962a20000803f000000c00000003f");
  CHECK(hex(open.value("weights:m")) ==
        "53504545444f4d3293879ff8c287083309010000000000000011020000000000"
        "000018888e98a8c0e080810120032804300338808010420d09a409f7e5f68962"
        "a2100c180048006001");
  CHECK(hex(open.value("job:b")) == "53504545444f423111a6e8601cfd694774657874");
}

TEST_CASE("every damaged byte of a chunk is found", "[store]") {
  OpenStore open;
  require(put(open.store, "weights", golden_info(), kValues));
  const std::string chunk = open.value("weights:s0:c0");
  std::vector<float> target(kValues.size());
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    CAPTURE(i);
    std::string damaged = chunk;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    open.set("weights:s0:c0", damaged);
    const ErrorCode code = code_of(get(open.store, "weights", kModel, target));
    // In version and checksum damage looks like a newer put, which never comes.
    const bool in_promise = (i >= 8 && i < 16) || (i >= 24 && i < 32);
    REQUIRE(code == (in_promise ? ErrorCode::kNotFound : ErrorCode::kCorrupt));
  }
  for (std::size_t length = 0; length < chunk.size(); ++length) {
    open.set("weights:s0:c0", chunk.substr(0, length));
    REQUIRE(code_of(get(open.store, "weights", kModel, target)) == ErrorCode::kCorrupt);
  }
  open.set("weights:s0:c0", chunk + "x");
  REQUIRE(code_of(get(open.store, "weights", kModel, target)) == ErrorCode::kCorrupt);
  open.set("weights:s0:c0", chunk);
  require(get(open.store, "weights", kModel, target));
}

TEST_CASE("every damaged byte of a manifest or blob is found", "[store]") {
  OpenStore open;
  require(put(open.store, "weights", golden_info(), kValues));
  require(open.store.put_blob("job", "text"));
  const std::string manifest = open.value("weights:m"), blob = open.value("job:b");
  for (std::size_t i = 0; i < manifest.size(); ++i) {
    std::string damaged = manifest;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    open.set("weights:m", damaged);
    REQUIRE(code_of(open.store.read("weights")) == ErrorCode::kCorrupt);
    open.set("weights:m", manifest.substr(0, i));
    REQUIRE(code_of(open.store.read("weights")) == ErrorCode::kCorrupt);
  }
  for (std::size_t i = 0; i < blob.size(); ++i) {
    std::string damaged = blob;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    open.set("job:b", damaged);
    REQUIRE(code_of(open.store.get_blob("job")) == ErrorCode::kCorrupt);
    open.set("job:b", blob.substr(0, i));
    REQUIRE(code_of(open.store.get_blob("job")) == ErrorCode::kCorrupt);
  }
  // A damaged manifest does not stop the next put.
  require(put(open.store, "weights", golden_info(), kValues));
  std::vector<float> target(kValues.size());
  require(get(open.store, "weights", kModel, target));
}

TEST_CASE("every 64-bit count of floats has its chunks", "[store]") {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  REQUIRE(chunk_count(0) == 0);
  REQUIRE(chunk_count(1) == 1);
  REQUIRE(chunk_count(kChunkElements) == 1);
  REQUIRE(chunk_count(kChunkElements + 1) == 2);
  for (const std::uint64_t count :
       {kMost, kMost - 1, kMost - kChunkElements + 1, kMost - kChunkElements + 2, kMost / 2 + 1,
        std::uint64_t{1} << 32U}) {
    CAPTURE(count);
    const std::uint64_t chunks = chunk_count(count);
    REQUIRE((chunks - 1) * kChunkElements < count);
    REQUIRE(count - (chunks - 1) * kChunkElements <= kChunkElements);
    REQUIRE(chunk_elements(count, chunks - 1) == count - (chunks - 1) * kChunkElements);
  }
}

TEST_CASE("a manifest that counts more floats than it names chunks for is damaged", "[store]") {
  OpenStore open;
  const std::uint64_t count = std::numeric_limits<std::uint64_t>::max() -
                              GENERATE(std::uint64_t{0}, kChunkElements / 2, kChunkElements - 2,
                                       kChunkElements - 1, kChunkElements, 2 * kChunkElements);
  const std::size_t chunks = GENERATE(0, 1, 2);
  CAPTURE(count, chunks);
  RecordManifest manifest;
  manifest.info = info_of(1, 0);
  manifest.info.element_count = count;
  manifest.chunks.assign(chunks, {.checksum = 7, .bytes = kChunkBytes});
  open.set("weights:m", encode_manifest(manifest));
  REQUIRE(code_of(open.store.read("weights")) == ErrorCode::kCorrupt);
  std::vector<float> target(3);
  REQUIRE(code_of(get(open.store, "weights", kModel, target)) == ErrorCode::kCorrupt);
  require(put(open.store, "weights", golden_info(), kValues));
}

TEST_CASE("a manifest that names a slot that nobody wrote to has no chunks", "[store]") {
  for (const std::uint32_t slot : {kRecordSlots, std::numeric_limits<std::uint32_t>::max()}) {
    CAPTURE(slot);
    OpenStore open;
    RecordManifest manifest;
    manifest.info = golden_info();
    manifest.slot = slot;
    manifest.chunks = {{.checksum = 7, .bytes = 12}};
    open.set("weights:m", encode_manifest(manifest));
    std::vector<float> target(3);
    REQUIRE(code_of(get(open.store, "weights", kModel, target)) == ErrorCode::kNotFound);
    require(put(open.store, "weights", golden_info(), kValues));
    open.set("weights:m", encode_manifest(manifest));
    require(open.store.erase("weights"));
    REQUIRE(code_of(open.store.read("weights")) == ErrorCode::kNotFound);
  }
}

TEST_CASE("a manifest whose chunks have not their values' size, or are elsewhere, is damaged",
          "[store]") {
  const ManifestChunk bad = GENERATE(
      values<ManifestChunk>({{.bytes = 8}, {.bytes = 16}, {}, {.bytes = 12, .server = 1}}));
  CAPTURE(bad.bytes, bad.server);
  OpenStore open;
  RecordManifest manifest;
  manifest.info = golden_info();
  manifest.chunks = {bad};
  open.set("weights:m", encode_manifest(manifest));
  REQUIRE(code_of(open.store.read("weights")) == ErrorCode::kCorrupt);
  require(put(open.store, "weights", golden_info(), kValues));
}

// Whoever has no use for it clears the job.
TEST_CASE("a record of an older layout or another codec is neither read nor replaced", "[store]") {
  OpenStore open;
  std::string stored = older_manifest();
  std::string named = "layout 1";
  SECTION("layout") {}
  SECTION("codec") {
    RecordManifest manifest;
    manifest.info = info_of(1, 0);
    manifest.info.codec = static_cast<CodecKind>(8);
    stored = encode_manifest(manifest);
    named = "codec 8";
  }
  open.set("weights:m", stored);
  std::vector<float> target(kValues.size());
  for (const Error& error : {open.store.read("weights").error(),
                             get(open.store, "weights", kModel, target).error(),
                             put(open.store, "weights", golden_info(), kValues).error()}) {
    CHECK(error.code == ErrorCode::kMismatch);
    CHECK_THAT(error.message, Catch::Contains("record 'weights' of job 'j'"));
    CHECK_THAT(error.message, Catch::Contains(named));
    CHECK_THAT(error.message, Catch::Contains("--resume=FILE"));
  }
  CHECK(open.value("weights:m") == stored);
  require(open.store.clear());
  require(put(open.store, "weights", golden_info(), kValues));
  require(get(open.store, "weights", kModel, target));
}

// The master may be asleep for as long as its machine is.
TEST_CASE("contributions outlast a pause of days, and not an abandoned job", "[store]") {
  ManualClock clock;
  ChunkedStore store(std::make_shared<MemoryKeyValue>(clock), "j");
  require(put(store, weights_key(), golden_info(), kValues));
  require(put(store, contribution_key(1, 2), golden_info(), kValues));
  std::vector<float> target(kValues.size());
  clock.advance(std::chrono::hours(6 * 24));
  require(get(store, contribution_key(1, 2), kModel, target));
  REQUIRE(target == kValues);
  clock.advance(std::chrono::hours(2 * 24));
  REQUIRE(code_of(store.read(contribution_key(1, 2))) == ErrorCode::kNotFound);
  require(get(store, weights_key(), kModel, target));
}

TEST_CASE("chunks that the store forgot during a put go out again", "[store]") {
  OpenStore open;
  const std::size_t count = 2 * kChunkElements;
  const auto values = pattern(count, 1);
  const std::span<const float> all = values;
  require(open.store.put_blob("job", "text"));
  const MemoryImage before = open.map->image();
  auto writer = open.store.write("weights", info_of(1, count));
  writer->write(0, all.first(kChunkElements));
  open.map->set_image(before);
  writer->write(1, all.subspan(kChunkElements));
  require(writer->finish());
  std::vector<float> target(count);
  require(get(open.store, "weights", kModel, target));
  REQUIRE((target == values));
  REQUIRE(*open.store.get_blob("job") == "text");
}

TEST_CASE("a lost chunk is kNotFound in bounded time", "[store]") {
  OpenStore open;
  require(put(open.store, "weights", golden_info(), kValues));
  auto erase = std::make_shared<KvOperation>();
  erase->kind = KvOperation::Kind::kErase;
  erase->keys = {"speedo:{j}:weights:s0:c0"};
  require(execute(*open.map, erase));
  std::vector<float> target(kValues.size());
  REQUIRE(code_of(get(open.store, "weights", kModel, target)) == ErrorCode::kNotFound);
}

}  // namespace speedo::test
