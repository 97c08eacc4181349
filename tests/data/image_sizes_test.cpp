// Records of several sizes, read one by one: each batch has its own record's shape.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <speedo/base/random.hpp>

#include "data/datum_batch_reader.hpp"
#include "data/feed_factory.hpp"
#include "data/prefetch_feed.hpp"
#include "data_support.hpp"
#include "support/random_seed.hpp"

namespace speedo {
namespace {

constexpr std::int64_t kRecords = 23;

Record record_of_size(std::int64_t index) {
  return numbered_record(index, 2, 1 + index * 7 % 19, 1 + index * 5 % 17);
}

std::filesystem::path write_records(const TempDir& folder, const std::vector<Record>& records) {
  MemorySource source(records);
  REQUIRE(convert(source, {.output = folder / "d", .format = RecordFormat::kDatumfile}));
  return folder / "d";
}

std::vector<Record> records_of_sizes() {
  std::vector<Record> records;
  for (std::int64_t i = 0; i < kRecords; ++i) records.push_back(record_of_size(i));
  return records;
}

auto open_feed(const std::filesystem::path& source, const std::string& rest = "",
               const std::string& batch_size = "1", int threads = 1) {
  FeedOptions options;
  options.top_count = 2;
  return make_feed_factory(threads)->open(
      layer_from("name: 'data' type: 'Data' top: 'data' top: 'label' data_param { source: '" +
                 source.string() + "' backend: DATUMFILE batch_size: " + batch_size + " } " + rest),
      options);
}

void require_shapes(BatchFeed& feed, std::uint64_t batch) {
  const Record record = record_of_size(static_cast<std::int64_t>(batch) % kRecords);
  const auto shapes = feed.shapes_of(batch);
  REQUIRE(shapes);
  REQUIRE(*shapes == std::vector<Shape>{Shape{1, 2, record.height, record.width}, Shape{1}});
}

void require_batch(BatchFeed& feed, std::uint64_t batch) {
  const Record record = record_of_size(static_cast<std::int64_t>(batch) % kRecords);
  const auto tops = feed.read(batch);
  REQUIRE(tops);
  REQUIRE(std::ranges::equal((*tops)[0], record.bytes));
  REQUIRE((*tops)[1].size() == 1);
  REQUIRE((*tops)[1][0] == static_cast<float>(record.label));
}

TEST_CASE("batches of one record have its size, asked for before or not") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({1})));
  CAPTURE(seed);
  Random random(seed);
  const TempDir folder;
  const auto source = write_records(folder, records_of_sizes());
  for (const int threads : {1, 4}) {
    const auto feed = open_feed(source, "", "1", threads);
    REQUIRE(feed);
    CHECK((*feed)->shapes_vary());
    CHECK((*feed)->shapes() == std::vector<Shape>{Shape{1, 2, 1, 1}, Shape{1}});
    for (int round = 0; round < 300; ++round) {
      const std::uint64_t batch = random.below(60);
      for (std::uint64_t ahead = random.below(5); ahead > 0; --ahead) {
        (*feed)->will_need(random.below(3) == 0 ? batch : random.below(60));
      }
      for (std::uint64_t asked = random.below(3); asked > 0; --asked) require_shapes(**feed, batch);
      require_batch(**feed, batch);
    }
  }
}

TEST_CASE("a crop or larger batches leave one size") {
  const TempDir folder;
  std::vector<Record> records = numbered_records(2);
  records.push_back(numbered_record(2, 2, 5, 4));
  const auto source = write_records(folder, records);
  const auto cropped = open_feed(source, "transform_param { crop_size: 3 }");
  REQUIRE(cropped);
  CHECK_FALSE((*cropped)->shapes_vary());
  CHECK((*cropped)->read(2));
  const auto pair = open_feed(source, "", "2");
  REQUIRE(pair);
  CHECK_FALSE((*pair)->shapes_vary());
  check_error((*pair)->read(1), ErrorCode::kData, "(batch_size: 1)");
}

TEST_CASE("of several sizes, a record that cannot be one of them is named") {
  const TempDir folder;
  std::vector<Record> records = records_of_sizes();
  records[4] = numbered_record(4, 3, 5, 5);
  const auto feed = open_feed(write_records(folder, records));
  REQUIRE(feed);
  require_batch(**feed, 3);
  check_error((*feed)->shapes_of(4), ErrorCode::kData,
              "record 4 has 3 channels, but record 0 has 2");
  check_error((*feed)->read(4), ErrorCode::kData, "record 4 has 3 channels");
  require_shapes(**feed, 5);
  require_batch(**feed, 5);
}

// One record cannot be read the first time.
class FailsOnce final : public MemorySource {
 public:
  FailsOnce() : MemorySource(records_of_sizes()) {}
  Result<void> read(std::int64_t index, Record& record) override {
    if (index == 4 && !std::exchange(has_failed_, true)) return Error{ErrorCode::kData, "torn"};
    return MemorySource::read(index, record);
  }

 private:
  bool has_failed_ = false;
};

TEST_CASE("a batch whose shapes could not be read is read again") {
  auto transformer = Transformer::create({}, Phase::kTrain, {});
  REQUIRE(transformer);
  auto reader = DatumBatchReader::create(std::make_unique<FailsOnce>(),
                                         std::move(*transformer), {.batch_size = 1});
  REQUIRE(reader);
  PrefetchFeed feed(std::move(*reader));
  feed.will_need(4);
  check_error(feed.shapes_of(4), ErrorCode::kData, "torn");
  require_shapes(feed, 4);
  require_batch(feed, 4);
}

TEST_CASE("images that are stretched to one size do not vary") {
  const TempDir folder;
  write_bytes(folder / "a.pgm", "P5 2 3 255\nabcdef");
  write_bytes(folder / "list", "a.pgm 0\n");
  const auto open_list = [&](const std::string& more) {
    FeedOptions options;
    options.top_count = 2;
    options.base = folder.path();
    return make_feed_factory()->open(
        layer_from("name: 'data' type: 'ImageData' top: 'data' top: 'label' image_data_param { "
                   "source: 'list' batch_size: 1 " + more + " }"),
        options);
  };
  const auto as_they_are = open_list("");
  REQUIRE(as_they_are);
  CHECK((*as_they_are)->shapes_vary());
  const auto stretched = open_list("new_height: 4 new_width: 5");
  REQUIRE(stretched);
  CHECK_FALSE((*stretched)->shapes_vary());
}

}  // namespace
}  // namespace speedo
