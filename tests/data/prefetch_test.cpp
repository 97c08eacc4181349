#include "data/prefetch_feed.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include <speedo/base/limits.hpp>
#include <speedo/base/random.hpp>

#include "data_support.hpp"

namespace speedo {
namespace {

// Batch b holds the value b; batch 13 cannot be read. Counts what it is asked for.
class CountingReader : public BatchReader {
 public:
  explicit CountingReader(std::atomic<int>& reads) : reads_(reads) {}
  const std::vector<Shape>& shapes() const override { return shapes_; }
  std::uint64_t record_count() const override { return 100; }
  Result<void> read(std::uint64_t batch, Tops& tops) override {
    ++reads_;
    if (batch == 13) return Error{ErrorCode::kData, "batch 13 is unlucky"};
    for (auto& top : tops) std::fill(top.begin(), top.end(), static_cast<float>(batch));
    return {};
  }

 private:
  std::atomic<int>& reads_;
  std::vector<Shape> shapes_{Shape{2, 3}, Shape{2}};
};

struct Fixture {
  std::atomic<int> reads{0};
  PrefetchFeed feed{std::make_unique<CountingReader>(reads)};

  void check_reads(std::uint64_t batch) {
    const auto tops = feed.read(batch);
    REQUIRE(tops);
    REQUIRE(tops->size() == 2);
    REQUIRE((*tops)[0].size() == 6);
    for (const float value : (*tops)[0]) REQUIRE(value == static_cast<float>(batch));
    REQUIRE((*tops)[1][1] == static_cast<float>(batch));
  }
};

TEST_CASE("batches come as asked for, read ahead or not") {
  Fixture fixture;
  fixture.check_reads(5);
  for (std::uint64_t batch = 6; batch < 60; ++batch) {
    if (batch == 13) continue;
    for (std::uint64_t ahead = 0; ahead < 3; ++ahead) fixture.feed.will_need(batch + ahead);
    fixture.check_reads(batch);
  }
}

// Takes a while for each batch.
class SlowReader : public CountingReader {
 public:
  using CountingReader::CountingReader;
  Result<void> read(std::uint64_t batch, Tops& tops) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return CountingReader::read(batch, tops);
  }
};

TEST_CASE("the meter counts waiting, not reading ahead, and the memory of living feeds") {
  std::atomic<int> reads{0};
  const auto meter = std::make_shared<FeedMeter>();
  {
    PrefetchFeed feed(std::make_unique<SlowReader>(reads), meter);
    CHECK(meter->host_bytes == (kPrefetchBatches + 1) * (6 + 2) * 4);
    REQUIRE(feed.read(1));
    const std::int64_t waited_ns = meter->waited_ns;
    CHECK(waited_ns >= 19'000'000);
    feed.will_need(2);
    for (int i = 0; i < 1000 && reads < 2; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    REQUIRE(feed.read(2));
    CHECK(meter->waited_ns == waited_ns);
  }
  CHECK(meter->host_bytes == 0);
}

TEST_CASE("a batch read ahead is read once") {
  Fixture fixture;
  for (std::uint64_t batch = 20; batch < 40; ++batch) {
    fixture.feed.will_need(batch);
    fixture.feed.will_need(batch);
    fixture.check_reads(batch);
  }
  CHECK(fixture.reads == 20);
}

TEST_CASE("requests beyond the queue are dropped") {
  Fixture fixture;
  for (std::uint64_t batch = 20; batch < 90; ++batch) fixture.feed.will_need(batch);
  fixture.check_reads(89);
  CHECK(fixture.reads <= kPrefetchBatches + 1);
}

TEST_CASE("an error belongs to its batch, and the next one is read again") {
  Fixture fixture;
  fixture.feed.will_need(12);
  fixture.feed.will_need(13);
  fixture.feed.will_need(14);
  fixture.check_reads(12);
  check_error(fixture.feed.read(13), ErrorCode::kData, "unlucky");
  fixture.check_reads(14);
  check_error(fixture.feed.read(13), ErrorCode::kData, "unlucky");
  fixture.check_reads(12);
}

TEST_CASE("predictions that do not come true make room for others") {
  Fixture fixture;
  Random random(1);
  int jumps_ahead = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::uint64_t batch = 20 + random.below(1000);
    for (std::uint64_t ahead = 0; ahead < random.below(6); ++ahead) {
      fixture.feed.will_need(random.below(4) == 0 ? batch : 2000 + random.below(1000));
    }
    fixture.check_reads(batch);
    // After any jump the queue must serve the new place: the next batch is asked for and counted.
    const int before = fixture.reads;
    fixture.feed.will_need(batch + 1);
    fixture.check_reads(batch + 1);
    if (fixture.reads > before) ++jumps_ahead;
  }
  CHECK(jumps_ahead > 0);
}

TEST_CASE("a feed may be dropped while it reads ahead") {
  for (int round = 0; round < 50; ++round) {
    Fixture fixture;
    for (std::uint64_t batch = 20; batch < 23; ++batch) fixture.feed.will_need(batch);
    if (round % 2 == 0) fixture.check_reads(20);
  }
}

}  // namespace
}  // namespace speedo
