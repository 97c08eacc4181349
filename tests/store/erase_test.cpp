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

}  // namespace speedo::test
