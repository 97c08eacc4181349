// Records decoded by several threads: the same batches, errors and end as with one.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include <zlib.h>
#include <speedo/base/limits.hpp>
#include <speedo/base/random.hpp>

#include "data/csv.hpp"
#include "data/datum_batch_reader.hpp"
#include "data/feed_factory.hpp"
#include "data/prefetch_feed.hpp"
#include "data_support.hpp"
#include "datumfile_support.hpp"
#include "jpeg_support.hpp"
#include "support/random_seed.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

constexpr int kThreadCounts[] = {2, 3, 8};

using Batch = std::vector<std::vector<float>>;

// In the stream's order, as a net reads them.
std::vector<Batch> read_stream(BatchFeed& feed, std::uint64_t count) {
  std::vector<Batch> batches;
  for (std::uint64_t batch = 0; batch < count; ++batch) {
    for (std::uint64_t ahead = 0; ahead < 3; ++ahead) feed.will_need(batch + ahead);
    const auto tops = feed.read(batch);
    if (!tops) INFO(tops.error().message);
    REQUIRE(tops);
    Batch& values = batches.emplace_back();
    for (const std::span<const float> top : *tops) values.emplace_back(top.begin(), top.end());
  }
  return batches;
}

std::vector<Batch> read_layer(const std::string& text, int threads, std::uint64_t count) {
  FeedOptions options;
  options.seed = 7;
  options.top_count = 2;
  const auto feed = make_feed_factory(threads)->open(layer_from(text), options);
  if (!feed) INFO(feed.error().message);
  REQUIRE(feed);
  return read_stream(**feed, count);
}

void check_same_with_threads(const std::string& text, std::uint64_t count) {
  INFO(text);
  const std::vector<Batch> expected = read_layer(text, 1, count);
  for (const int threads : kThreadCounts) {
    INFO(threads << " threads");
    CHECK(read_layer(text, threads, count) == expected);
  }
}

std::string threads_layer(const fs::path& source, const std::string& more, int crop) {
  return "name: 'data' type: 'Data' top: 'data' top: 'label' data_param { source: '" +
         source.string() + "' " + more +
         " } transform_param { mirror: true scale: 0.5 crop_size: " + std::to_string(crop) +
         " mean_value: 3 }";
}

std::string noise_jpeg(unsigned side, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::uint8_t> pixels(std::size_t{side} * side * 3);
  for (std::uint8_t& value : pixels) value = static_cast<std::uint8_t>(random.below(256));
  return make_jpeg(side, 3, pixels, [](jpeg_compress_struct&) {});
}

// A datumfile of JPEGs of several sizes; those of `damaged` end too early.
void write_jpegs(const fs::path& path, std::uint64_t count,
                 const std::set<std::uint64_t>& damaged = {}) {
  std::string file;
  for (std::uint64_t index = 0; index < count; ++index) {
    std::string jpeg = noise_jpeg(static_cast<unsigned>(40 + index % 3 * 8), index);
    if (damaged.count(index) > 0) jpeg.resize(jpeg.size() / 2);
    caffe::Datum datum;
    datum.set_encoded(true);
    datum.set_data(jpeg);
    datum.set_label(static_cast<int>(index));
    file += record_text("key" + std::to_string(index), datum.SerializeAsString());
  }
  write_bytes(path, file);
}

TEST_CASE("threads: raw datums make the same batches with any number of threads") {
  const TempDir folder;
  MemorySource small(numbered_records(50, 3, 9, 8)), large(numbered_records(10, 3, 120, 100));
  REQUIRE(convert(small, {.output = folder / "small", .format = RecordFormat::kLmdb}));
  REQUIRE(convert(large, {.output = folder / "large", .format = RecordFormat::kLmdb}));
  for (const char* batch : {"batch_size: 1", "batch_size: 7", "batch_size: 300"}) {
    check_same_with_threads(
        threads_layer(folder / "small", std::string(batch) + " backend: LMDB rand_skip: 9", 6), 12);
  }
  for (const char* batch : {"batch_size: 1", "batch_size: 8"}) {
    check_same_with_threads(threads_layer(folder / "large", std::string(batch), 97), 12);
  }
}

TEST_CASE("threads: each record tosses its own coins, by its place in the stream") {
  const std::vector<Record> records = numbered_records(10, 2, 90, 80);
  caffe::TransformationParameter parameter;
  parameter.set_mirror(true);
  parameter.set_crop_size(75);
  const auto transformer = Transformer::create(parameter, Phase::kTrain, {});
  REQUIRE(transformer);
  auto reader = DatumBatchReader::create(std::make_unique<MemorySource>(records), *transformer,
                                         {.batch_size = 6, .seed = 11});
  REQUIRE(reader);
  PrefetchFeed feed(std::move(reader).value(), nullptr, 4);
  const std::vector<Batch> batches = read_stream(feed, 10);
  constexpr std::size_t kValues = 2 * 75 * 75;
  std::vector<float> expected(kValues);
  for (std::size_t place = 0; place < 60; ++place) {
    INFO("record " << place);
    Random random = Random::derive(11, {place});
    transformer->apply(records[place % 10], random, expected);
    const auto begin = batches[place / 6][0].begin() + static_cast<long>(place % 6 * kValues);
    CHECK(std::equal(expected.begin(), expected.end(), begin));
    CHECK(batches[place / 6][1][place % 6] == static_cast<float>(place % 10));
  }
}

TEST_CASE("threads: encoded images make the same batches with any number of threads") {
  const TempDir folder;
  write_jpegs(folder / "jpegs", 30);
  check_same_with_threads(threads_layer(folder / "jpegs", "batch_size: 16", 33), 8);
  check_same_with_threads(threads_layer(folder / "jpegs", "batch_size: 1", 40), 40);
}

TEST_CASE("threads: MNIST's files, packed, make the same batches with any number of threads") {
  const TempDir folder;
  const auto pack = [](const fs::path& path, const std::string& bytes) {
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
  };
  std::string images = big32_text(0x803) + big32_text(40) + big32_text(28) + big32_text(28);
  for (int i = 0; i < 40 * 28 * 28; ++i) images.push_back(static_cast<char>(i * 13 % 256));
  pack(folder / "images-idx3-ubyte.gz", images);
  pack(folder / "labels-idx1-ubyte.gz", big32_text(0x801) + big32_text(40) + std::string(40, '\3'));
  check_same_with_threads(threads_layer(folder / "images-idx3-ubyte.gz", "batch_size: 100", 24), 9);
}

TEST_CASE("threads: a packed table makes the same batches with any number of threads") {
  const TempDir folder;
  gzFile file = gzopen((folder / "t.csv.gz").c_str(), "wb");
  for (int row = 0; row < 30; ++row) gzprintf(file, "%d,%d.5,%d\n", row, 2 * row, row % 4);
  gzclose(file);
  const auto read_with = [&](int threads) {
    auto source = open_csv(folder / "t.csv.gz", {.floats = true});
    REQUIRE(source);
    const auto transformer = Transformer::create({}, Phase::kTrain, {});
    REQUIRE(transformer);
    auto reader =
        DatumBatchReader::create(std::move(source).value(), *transformer, {.batch_size = 20000});
    REQUIRE(reader);
    PrefetchFeed feed(std::move(reader).value(), nullptr, threads);
    return read_stream(feed, 5);
  };
  const std::vector<Batch> expected = read_with(1);
  for (const int threads : kThreadCounts) CHECK(read_with(threads) == expected);
}

TEST_CASE("threads: HDF5 rows make the same batches with any number of threads") {
  const TempDir folder;
  write_numbered(folder / "list", RecordFormat::kHdf5, 20);
  check_same_with_threads(
      "name: 'data' type: 'HDF5Data' top: 'data' top: 'label' hdf5_data_param { source: '" +
          (folder / "list").string() + "' batch_size: 6 shuffle: true }",
      15);
}

TEST_CASE("threads: of several bad records the stream's first is reported, with its batch") {
  const TempDir folder;
  write_jpegs(folder / "jpegs", 64, {21, 22, 30, 40});
  const std::string text = threads_layer(folder / "jpegs", "batch_size: 16", 33);
  FeedOptions options;
  options.top_count = 2;
  const auto reference = make_feed_factory(1)->open(layer_from(text), options);
  REQUIRE(reference);
  const std::string second = message_of((*reference)->read(1));
  const std::string third = message_of((*reference)->read(2));
  CHECK(second.find("record 21 (key 'key21') holds an encoded image that") != std::string::npos);
  CHECK(third.find("record 40 ") != std::string::npos);
  for (const int threads : kThreadCounts) {
    const auto feed = make_feed_factory(threads)->open(layer_from(text), options);
    REQUIRE(feed);
    for (int round = 0; round < 10; ++round) {
      for (std::uint64_t batch = 0; batch < 3; ++batch) (*feed)->will_need(batch);
      CHECK((*feed)->read(0));
      CHECK(message_of((*feed)->read(1)) == second);
      CHECK(message_of((*feed)->read(2)) == third);
      CHECK((*feed)->read(3));
    }
  }
}

// Records of 100 x 400 values, each a part of its own. Those behind the first eight wait for
// open().
class GateSource : public DataSource {
 public:
  std::int64_t size() const override { return 1000; }
  Result<void> read(std::int64_t index, Record& record) override {
    std::unique_lock lock(mutex_);
    ++inside_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_ || index < 8; });
    --inside_;
    record = numbered_record(index, 1, 100, 400);
    return {};
  }
  bool wait_inside(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return inside_ >= count; });
  }
  void open() {
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool open_ = false;
};

struct GateFeed {
  GateFeed(std::int64_t batch_size, int threads, std::shared_ptr<FeedMeter> meter = nullptr) {
    auto owned = std::make_unique<GateSource>();
    source = owned.get();
    const auto transformer = Transformer::create({}, Phase::kTrain, {});
    REQUIRE(transformer);
    auto reader =
        DatumBatchReader::create(std::move(owned), *transformer, {.batch_size = batch_size});
    REQUIRE(reader);
    feed = std::make_unique<PrefetchFeed>(std::move(reader).value(), std::move(meter), threads);
  }
  GateSource* source;
  std::unique_ptr<PrefetchFeed> feed;
};

TEST_CASE("threads: records of one batch are decoded at once, and so are several batches") {
  for (const std::uint64_t batch_size : {1, 8}) {
    GateFeed gate(static_cast<std::int64_t>(batch_size), 3);
    for (std::uint64_t batch = 20; batch < 23; ++batch) gate.feed->will_need(batch);
    CHECK(gate.source->wait_inside(3));
    gate.source->open();
    const auto tops = gate.feed->read(20);
    REQUIRE(tops);
    CHECK((*tops)[1][0] == static_cast<float>(20 * batch_size));
  }
}

TEST_CASE("threads: batches given up while they are read leave room for the one asked for") {
  GateFeed gate(8, 16);
  gate.feed->will_need(1);
  CHECK(gate.source->wait_inside(8));
  // The other eight threads read batch 0, which passes the gate; then they are held, too.
  REQUIRE(gate.feed->read(0));
  for (std::uint64_t batch = 11; batch < 14; ++batch) gate.feed->will_need(batch);
  CHECK(gate.source->wait_inside(16));
  std::thread opener([&] { gate.source->open(); });
  for (std::uint64_t batch = 50; batch < 80; batch += 3) {
    const auto tops = gate.feed->read(batch);
    REQUIRE(tops);
    CHECK((*tops)[1][0] == static_cast<float>(batch * 8));
  }
  opener.join();
}

TEST_CASE("threads: random jumps give the batch asked for, with any number of threads") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({1})));
  CAPTURE(seed);
  Random random(seed);
  for (const int threads : kThreadCounts) {
    GateFeed gate(3, threads);
    gate.source->open();
    for (int round = 0; round < 300; ++round) {
      const std::uint64_t batch = random.below(300);
      const std::uint64_t wanted = random.below(6);
      for (std::uint64_t ahead = 0; ahead < wanted; ++ahead) {
        gate.feed->will_need(random.below(3) == 0 ? batch : random.below(300));
      }
      const auto tops = gate.feed->read(batch);
      REQUIRE(tops);
      for (std::uint64_t i = 0; i < 3; ++i) {
        const std::int64_t record = static_cast<std::int64_t>(batch * 3 + i);
        REQUIRE((*tops)[1][i] == static_cast<float>(record));
        REQUIRE((*tops)[0][i * 40000] == static_cast<float>(record * 31 % 251));
        REQUIRE((*tops)[0][i * 40000 + 39999] == static_cast<float>((record * 31 + 39999) % 251));
      }
    }
  }
}

TEST_CASE("threads: a feed may be dropped while its threads decode") {
  for (int round = 0; round < 20; ++round) {
    GateFeed gate(5, 1 + round % 4);
    for (std::uint64_t batch = 2; batch < 5; ++batch) gate.feed->will_need(batch);
    if (round % 3 == 0) CHECK(gate.source->wait_inside(1));
    gate.source->open();
    if (round % 2 == 0) CHECK(gate.feed->read(2));
  }
}

TEST_CASE("threads: what each keeps is counted, and there are no more than have work") {
  const auto meter = std::make_shared<FeedMeter>();
  constexpr std::int64_t kRecordBytes = 100 * 400;
  for (const auto& [batch_size, threads, kept] :
       {std::tuple(8, 1, 1), std::tuple(8, 5, 5), std::tuple(1, 5, 3)}) {
    const GateFeed gate(batch_size, threads, meter);
    CHECK(meter->host_bytes ==
          (kPrefetchBatches + 1) * batch_size * (kRecordBytes + 1) * 4 + kept * 3 * kRecordBytes);
  }
  CHECK(meter->host_bytes == 0);
}

}  // namespace
}  // namespace speedo
