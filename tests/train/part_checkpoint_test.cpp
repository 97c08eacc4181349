// A part's checkpoint and its copy, of mergers of which each thinks that it has the part.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "store/chunk_range.hpp"
#include "train/joined_fixture.hpp"
#include "train/parts/neighbor_copies.hpp"

namespace speedo::test {
namespace {

constexpr std::size_t kServers = 3;

// Of part 1: the record lies on server 1, its copy on server 2.
struct Checkpoints {
  Checkpoints() {
    for (std::size_t i = 0; i < kServers; ++i) {
      servers.push_back(std::make_shared<MemoryKeyValue>());
    }
    store = std::make_shared<ChunkedStore>(
        std::make_shared<ShardedKeyValue>(
            std::vector<std::shared_ptr<KeyValue>>(servers.begin(), servers.end()), "m"),
        "m");
    store->fence(7);
  }
  static PartCheckpointPlace place(std::uint32_t first_slot) {
    return {{1, kServers}, true, first_slot};
  }
  RecordInfo info(std::uint64_t version) const {
    RecordInfo info;
    info.version = version;
    info.element_count = values.size();
    return info;
  }
  // All but its end.
  std::unique_ptr<RecordWriter> begin(std::uint32_t first_slot, std::uint64_t version) {
    auto writer = write_part_checkpoint(*store, place(first_slot), info(version));
    write_all(*writer, values);
    return writer;
  }
  std::size_t chunks_in(std::uint32_t slot) const {
    std::size_t count = 0;
    for (const auto& server : servers) {
      const MemoryImage image = server->image();
      count += static_cast<std::size_t>(std::ranges::count_if(image, [&](const auto& each) {
        return each.first.find(":s" + std::to_string(slot) + ":c") != std::string::npos;
      }));
    }
    return count;
  }
  std::uint64_t version_of(const std::string& key) const {
    std::vector<float> found(values.size());
    const auto read = get(*store, key, Digest{}, found);
    require(read);
    CHECK((found == values));
    return read->version;
  }

  std::vector<std::shared_ptr<MemoryKeyValue>> servers;
  std::shared_ptr<ChunkedStore> store;
  const std::vector<float> values = random_floats(2 * kChunkElements + 10, 1.0F, 1);
  const std::string own_key = part_key(1, checkpoint_key());
  const std::string copy_key = part_copy_key(1, kServers, checkpoint_key());
};

}  // namespace

TEST_CASE("a merger that was thought to be gone ends its checkpoint after its successor",
          "[merger]") {
  Checkpoints part;
  const auto late = part.begin(3, 1);
  require(part.begin(6, 2)->finish());
  REQUIRE(late->finish().error().code == ErrorCode::kSuperseded);
  CHECK(part.chunks_in(3) == 0);
  CHECK(part.version_of(part.own_key) == 2);
  CHECK(part.version_of(part.copy_key) == 2);
  CHECK(erase_part_checkpoint(*part.store, part.place(3), part.values.size()).error().code ==
        ErrorCode::kSuperseded);
  CHECK(part.version_of(part.copy_key) == 2);
}

TEST_CASE("a merger that was thought to be gone ends its checkpoint between a copy and its record",
          "[merger]") {
  Checkpoints part;
  const auto late = part.begin(3, 1);
  const auto copy = part.store->write_in_turn(part.copy_key, part.info(2), 6);
  const auto own = part.store->write_in_turn(part.own_key, part.info(2), 6);
  for (const auto& writer : {copy.get(), own.get()}) write_all(*writer, part.values);
  require(copy->finish());
  REQUIRE(late->finish().error().code == ErrorCode::kSuperseded);
  CHECK(part.version_of(part.own_key) == 1);
  CHECK(part.version_of(part.copy_key) == 2);
  require(own->finish());
  CHECK(part.version_of(part.own_key) == 2);
  erase_unfinished(*part.store, part.place(3), part.values.size());
  CHECK(part.chunks_in(3) == 0);
}

TEST_CASE("what a merger that died in a checkpoint has left is removed", "[merger]") {
  Checkpoints part;
  part.begin(3, 1).reset();
  require(part.begin(6, 2)->finish());
  REQUIRE(part.chunks_in(3) == 2 * chunk_count(part.values.size()));
  for (const std::uint32_t first_slot : {3U, 6U}) {
    erase_unfinished(*part.store, part.place(first_slot), part.values.size());
  }
  CHECK(part.chunks_in(3) == 0);
  CHECK(part.version_of(part.own_key) == 2);
  CHECK(part.version_of(part.copy_key) == 2);
  require(erase_part_checkpoint(*part.store, part.place(6), part.values.size()));
  CHECK(part.chunks_in(6) == 0);
}

}  // namespace speedo::test
