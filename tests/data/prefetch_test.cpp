#include "data/prefetch_feed.hpp"

#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include <speedo/backend/host_device.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/base/random.hpp>

#include "data_support.hpp"
#include "support/random_seed.hpp"

namespace speedo {
namespace {

// What a reader was asked for, and when it begins to read.
class Reads {
 public:
  void begin(std::uint64_t batch) {
    std::unique_lock lock(mutex_);
    ++count_;
    ++of_batch_[batch];
    changed_.notify_all();
    changed_.wait(lock, [&] { return batch != held_; });
  }
  // From here on the reader stays in this batch, until release().
  void hold(std::uint64_t batch) {
    const std::lock_guard lock(mutex_);
    held_ = batch;
  }
  void release() {
    {
      const std::lock_guard lock(mutex_);
      held_.reset();
    }
    changed_.notify_all();
  }
  void wait_for(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ >= count; });
  }
  int count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  int of_batch(std::uint64_t batch) const {
    const std::lock_guard lock(mutex_);
    const auto found = of_batch_.find(batch);
    return found == of_batch_.end() ? 0 : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
  std::map<std::uint64_t, int> of_batch_;
  std::optional<std::uint64_t> held_;
};

// Batch b holds the value b; batch 13 cannot be read. Its one part is read by one thread.
class CountingReader : public BatchReader {
 public:
  explicit CountingReader(Reads& reads) : reads_(reads) {}
  std::int64_t part_count() const override { return 1; }
  bool takes_threads() const override { return false; }
  std::int64_t scratch_bytes() const override { return 40; }
  const std::vector<Shape>& shapes() const override { return shapes_; }
  std::uint64_t record_count() const override { return 100; }
  Result<void> read(std::uint64_t batch, std::int64_t, BatchTops& tops) override {
    reads_.begin(batch);
    if (batch == 13) return Error{ErrorCode::kData, "batch 13 is unlucky"};
    for (std::size_t i = 0; i < tops.size(); ++i) {
      std::ranges::fill(tops[i], static_cast<float>(batch));
    }
    return {};
  }

 private:
  Reads& reads_;
  std::vector<Shape> shapes_{Shape{2, 3}, Shape{2}};
};

struct Fixture {
  Reads reads;
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

TEST_CASE("the meter counts waiting, not reading ahead, and the memory of living feeds") {
  Reads reads;
  const auto meter = std::make_shared<FeedMeter>();
  {
    // The reader takes one thread, whatever is offered.
    PrefetchFeed feed(std::make_unique<CountingReader>(reads), meter, 3);
    CHECK(meter->host_bytes == (kPrefetchBatches + 1) * (6 + 2) * 4 + 40);
    REQUIRE(feed.read(1));  // Nobody asked for it before, so this waits.
    const std::int64_t waited_ns = meter->waited_ns;
    CHECK(waited_ns > 0);
    // While the reader is in batch 3, batch 2 is ready.
    reads.hold(3);
    feed.will_need(2);
    feed.will_need(3);
    reads.wait_for(3);
    const auto ready = feed.read(2);
    reads.release();
    REQUIRE(ready);
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
  CHECK(fixture.reads.count() == 20);
}

TEST_CASE("requests beyond the queue are dropped") {
  Fixture fixture;
  for (std::uint64_t batch = 20; batch < 90; ++batch) fixture.feed.will_need(batch);
  fixture.reads.wait_for(kPrefetchBatches);
  fixture.check_reads(89);
  CHECK(fixture.reads.count() == kPrefetchBatches + 1);
  for (std::uint64_t batch = 20; batch < 20 + kPrefetchBatches; ++batch) {
    CHECK(fixture.reads.of_batch(batch) == 1);
  }
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
  const std::uint64_t seed = GENERATE(from_range(test::seeds({1})));
  CAPTURE(seed);
  Fixture fixture;
  Random random(seed);
  for (int round = 0; round < 2000; ++round) {
    const std::uint64_t batch = 20 + random.below(1000);
    for (std::uint64_t ahead = 0; ahead < random.below(6); ++ahead) {
      fixture.feed.will_need(random.below(4) == 0 ? batch : 2000 + random.below(1000));
    }
    fixture.check_reads(batch);
    // After any jump the queue must serve the new place: the next batch is read, and once.
    const int before = fixture.reads.of_batch(batch + 1);
    fixture.feed.will_need(batch + 1);
    fixture.check_reads(batch + 1);
    REQUIRE(fixture.reads.of_batch(batch + 1) == before + 1);
  }
}

TEST_CASE("a feed may be dropped while it reads ahead") {
  for (int round = 0; round < 50; ++round) {
    Fixture fixture;
    for (std::uint64_t batch = 20; batch < 23; ++batch) fixture.feed.will_need(batch);
    if (round % 2 == 0) fixture.check_reads(20);
  }
}

TEST_CASE("a batch is ready when reading it would not wait") {
  Fixture fixture;
  CHECK(!fixture.feed.is_ready(5));
  fixture.feed.will_need(5);
  for (int i = 0; i < 10000 && !fixture.feed.is_ready(5); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(fixture.feed.is_ready(5));
  CHECK(!fixture.feed.is_ready(6));
  fixture.check_reads(5);
  CHECK(!fixture.feed.is_ready(5));
}

// Has room for so many arrays.
class SmallDevice final : public HostDevice {
 public:
  explicit SmallDevice(int room) : room_(room) {}
  Result<Buffer> allocate(std::size_t bytes) override {
    if (room_-- <= 0) return Error{ErrorCode::kFull, "no room for more"};
    arrays.emplace_back(bytes / sizeof(float));
    return Buffer(arrays.back().data(), bytes, [](void*) {});
  }
  void upload(float*, std::span<const float>) override {}
  void download(std::span<float>, const float*) override {}
  std::list<std::vector<float>> arrays;

 private:
  int room_;
};

TEST_CASE("batches lie in pinned memory of the device that is named") {
  SmallDevice device(2);
  Reads reads;
  PrefetchFeed feed(std::make_unique<CountingReader>(reads), nullptr, 1, &device);
  for (const std::uint64_t batch : {3U, 4U}) {
    const auto tops = feed.read(batch);
    REQUIRE(tops);
    CHECK((*tops)[0].data() == device.arrays.front().data());
    CHECK((*tops)[1].data() == device.arrays.back().data());
    CHECK(device.arrays.front() == std::vector<float>(6, static_cast<float>(batch)));
    feed.will_need(batch + 1);  // for which there is no room
  }
  CHECK(reads.count() == 2);
}

TEST_CASE("a lack of memory for a batch is an error of reading it") {
  SmallDevice device(1);
  Reads reads;
  PrefetchFeed feed(std::make_unique<CountingReader>(reads), nullptr, 1, &device);
  feed.will_need(3);
  const auto tops = feed.read(3);
  REQUIRE(!tops);
  CHECK(tops.error().code == ErrorCode::kFull);
}

}  // namespace
}  // namespace speedo
