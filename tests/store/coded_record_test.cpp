// Records whose values are written by a codec.

#include <algorithm>
#include <string>
#include <vector>

#include <speedo/base/random.hpp>
#include <speedo/codec/codec.hpp>

#include "store/chunk_range.hpp"
#include "store/store_under_test.hpp"
#include "support/random_seed.hpp"

namespace speedo::test {
namespace {

constexpr std::size_t kCodedCount = kChunkElements + 301;
const std::string kCodedKey = "worker/0/1";
const std::vector<std::string> kCodedAs = {"bf16", "fp16", "int8", "onebit", "threshold:0.5",
                                           "topk:3"};

// A record's chunks as a codec makes them, and what comes back of them.
struct CodedValues {
  CodecSpec codec;
  std::vector<std::vector<std::byte>> chunks;
  std::vector<float> decoded = std::vector<float>(kCodedCount);

  CodedValues(const std::string& name, std::uint64_t seed) : codec(*parse_codec(name)) {
    Random random(varied(seed));
    std::vector<float> values(kCodedCount);
    for (float& value : values) value = random.gaussian(0.0F, 1.0F);
    for (std::size_t chunk = 0; chunk < chunk_count(kCodedCount); ++chunk) {
      const auto part = chunk_of(std::span<const float>(values), chunk);
      chunks.emplace_back(encoded_bytes_max(codec, part.size()));
      const auto size = encode(codec, part, {}, chunks.back());
      require(size);
      chunks.back().resize(*size);
      require(decode(codec, chunks.back(), chunk_of(std::span(decoded), chunk)));
    }
  }

  RecordInfo info(std::uint64_t version) const {
    RecordInfo info = info_of(version, kCodedCount);
    info.codec = codec.kind;
    return info;
  }
  std::unique_ptr<RecordWriter> write(RecordStore& store, std::uint64_t version) const {
    auto writer = store.write(kCodedKey, info(version));
    REQUIRE(writer->is_coded());
    for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      writer->write_encoded(chunk, chunks[chunk]);
    }
    return writer;
  }
};

// A key's value, with a byte of it changed.
void flip(MemoryKeyValue& map, const std::string& key, std::size_t at) {
  auto read = std::make_shared<KvOperation>();
  read->kind = KvOperation::Kind::kGetWhole;
  read->key = key;
  require(execute(map, read));
  auto write = std::make_shared<KvOperation>();
  write->kind = KvOperation::Kind::kSet;
  write->key = key;
  write->head = read->text;
  write->head.at(at) ^= 1;
  require(execute(map, write));
}

}  // namespace

TEST_CASE("a coded record comes back as its codec decodes it", "[store]") {
  const std::string kind = GENERATE(from_range(store_kinds().begin(), store_kinds().end()));
  CAPTURE(kind);
  StoreUnderTest store(kind);
  std::uint64_t version = 1;
  for (const std::string& name : kCodedAs) {
    CAPTURE(name);
    const CodedValues values(name, version);
    require(values.write(*store, version)->finish());
    std::vector<float> target(kCodedCount);
    const auto info = get(*store, kCodedKey, kModel, target);
    require(info);
    CHECK(info->codec == values.codec.kind);
    CHECK(info->version == version++);
    CHECK(target == values.decoded);
  }
  // And one as it is again.
  const std::vector<float> plain = pattern(kCodedCount, 3);
  require(put(*store, kCodedKey, info_of(version, kCodedCount), plain));
  std::vector<float> target(kCodedCount);
  require(get(*store, kCodedKey, kModel, target));
  CHECK(target == plain);
}

TEST_CASE("a coded record can be read while it is written", "[store]") {
  const std::string kind = GENERATE(from_range(store_kinds().begin(), store_kinds().end()));
  CAPTURE(kind);
  StoreUnderTest store(kind);
  std::uint64_t version = 1;
  for (const std::string& name : kCodedAs) {
    CAPTURE(name);
    const CodedValues values(name, version);
    const auto writer = values.write(*store, version);
    const auto ahead =
        store->read_ahead(kCodedKey, {.version = version, .element_count = kCodedCount});
    const std::vector<std::size_t> both = {1, 0};
    const auto there = [&] {
      ahead->look(both);
      return ahead->seen();
    };
    while (!std::ranges::all_of(there(), std::identity())) {}
    std::vector<float> target(kCodedCount);
    for (const std::size_t chunk : both) ahead->request(chunk, chunk_of(std::span(target), chunk));
    for (const std::size_t chunk : both) require(ahead->wait(chunk));
    CHECK(target == values.decoded);
    require(writer->finish());
    const auto reader = store->read(kCodedKey);
    require(reader);
    for (const std::size_t chunk : both) {
      CHECK((*reader)->checksum(chunk) == ahead->checksum(chunk));
    }
    ++version;
  }
}

TEST_CASE("damage to a coded record is found", "[store]") {
  const std::string name = GENERATE(from_range(kCodedAs.begin(), kCodedAs.end()));
  CAPTURE(name);
  auto map = std::make_shared<MemoryKeyValue>();
  ChunkedStore store(map, "j");
  const CodedValues values(name, 9);
  require(values.write(store, 1)->finish());
  const std::string chunk = "speedo:{j}:" + kCodedKey + ":s0:c1";
  std::vector<float> target(kCodedCount);
  SECTION("a byte of its values") {
    Random random(varied(11));
    flip(*map, chunk, kChunkHeadBytes + random.below(values.chunks[1].size()));
    CHECK(code_of(get(store, kCodedKey, kModel, target)) == ErrorCode::kCorrupt);
  }
  SECTION("another codec than the manifest's") {
    flip(*map, chunk, 20);
    const auto reader = store.read(kCodedKey);
    require(reader);
    (*reader)->request(1, chunk_of(std::span(target), 1));
    const ErrorCode code = code_of((*reader)->wait(1));
    CHECK((code == ErrorCode::kNotFound || code == ErrorCode::kCorrupt));
  }
  SECTION("no codec's") {
    flip(*map, chunk, 21);
    CHECK(code_of(get(store, kCodedKey, kModel, target)) == ErrorCode::kCorrupt);
  }
}

// Whoever wrote it, whatever its checksum says.
TEST_CASE("bytes that no encoder writes are damage", "[store]") {
  ChunkedStore store(std::make_shared<MemoryKeyValue>(), "j");
  CodedValues values("topk:3", 10);
  values.chunks[1][0] = std::byte{0xff};
  values.chunks[1][3] = std::byte{0xff};
  require(values.write(store, 1)->finish());
  std::vector<float> target(kCodedCount);
  CHECK(code_of(get(store, kCodedKey, kModel, target)) == ErrorCode::kCorrupt);
}

}  // namespace speedo::test
