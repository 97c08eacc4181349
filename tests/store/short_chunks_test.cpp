// Few floats in many chunks, for one thread and for a time.

#include <numeric>
#include <thread>
#include <vector>

#include "store/chunk_range.hpp"
#include "store/store_under_test.hpp"

namespace speedo::test {

TEST_CASE("short chunks are those of one thread, while they are asked for", "[store][chunks]") {
  REQUIRE(chunk_length() == kChunkElements);
  {
    const ShortChunks outer(32);
    CHECK(chunk_length() == 32);
    CHECK(chunk_count(65) == 3);
    CHECK(chunk_elements(65, 2) == 1);
    {
      const ShortChunks inner(16);
      CHECK(chunk_count(65) == 5);
      std::size_t elsewhere = 0;
      std::thread([&] { elsewhere = chunk_length(); }).join();
      CHECK(elsewhere == kChunkElements);
    }
    CHECK(chunk_length() == 32);
  }
  CHECK(chunk_length() == kChunkElements);
}

TEST_CASE("a record is spread by short chunks as by long ones, and read only by such",
          "[store][chunks]") {
  const StoreUnderTest store("memory");
  std::vector<float> values(65), read(65);
  std::iota(values.begin(), values.end(), 1.0F);
  {
    const ShortChunks chunks(16);
    require(put(*store, "weights", info_of(1, values.size()), values));
    require(get(*store, "weights", kModel, read));
    REQUIRE((read == values));
    const auto reader = store->read("weights");
    require(reader);
    std::vector<float> chunk(16);
    (*reader)->request(3, chunk);
    require((*reader)->wait(3));
    CHECK(chunk.front() == 49.0F);
  }
  const auto refused = store->read("weights");
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::kCorrupt);
  CHECK(refused.error().message.find("has chunks of 16 floats") != std::string::npos);
}

}  // namespace speedo::test
