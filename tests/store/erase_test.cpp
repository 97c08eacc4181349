// What is left of a record when it is erased: nothing.

#include <algorithm>

#include "store/chunked_store.hpp"
#include "store/memory_key_value.hpp"
#include "store/store_under_test.hpp"

namespace speedo::test {
namespace {

constexpr std::size_t kThreeChunksCount = 2 * kChunkElements + 5;

// As a worker that dies in the middle of its put, after so many chunks.
void begin_put(RecordStore& store, const std::string& key, std::size_t chunks) {
  const auto values = pattern(kThreeChunksCount, 1);
  const auto writer = store.write(key, info_of(1, kThreeChunksCount));
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const std::size_t first = chunk * kChunkElements;
    writer->write(chunk, std::span<const float>(values).subspan(
                             first, std::min(kChunkElements, kThreeChunksCount - first)));
  }
}

}  // namespace

TEST_CASE("what a worker's unfinished put left is erased by its master", "[store]") {
  const std::size_t finished = GENERATE(0U, 1U, 2U);
  const std::size_t chunks = GENERATE(1U, 3U);
  const auto map = std::make_shared<MemoryKeyValue>();
  const std::string key = contribution_key(7, 3);
  {
    ChunkedStore worker(map, "test");
    const auto values = pattern(kThreeChunksCount, 1);
    for (std::size_t i = 0; i < finished; ++i) {
      require(put(worker, key, info_of(i + 1, kThreeChunksCount), values));
    }
    begin_put(worker, key, chunks);
  }
  REQUIRE_FALSE(map->image().empty());
  ChunkedStore master(map, "test");
  require(master.erase(key, kThreeChunksCount));
  REQUIRE(map->image().empty());
}

TEST_CASE("what a master's own unfinished put left is erased, and what workers left beside it",
          "[store]") {
  const bool has_finished = GENERATE(false, true);
  const auto map = std::make_shared<MemoryKeyValue>();
  const std::string key = local_key(7, 3);
  ChunkedStore worker(map, "test"), master(map, "test");
  begin_put(worker, key, 1);
  master.fence(7);
  if (has_finished) {
    require(put(master, key, info_of(1, kThreeChunksCount), pattern(kThreeChunksCount, 1)));
  }
  begin_put(master, key, 2);
  require(master.erase(key, kThreeChunksCount));
  const MemoryImage left = map->image();
  CHECK(left.size() == 1);  // the fence
  CHECK(left.contains("speedo:{test}/term"));
}

}  // namespace speedo::test
