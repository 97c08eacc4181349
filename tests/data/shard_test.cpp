// How workers share a data set: batches are numbered along one stream, the master leases runs of
// batches, and a feed turns a batch number into records. So whoever takes which batch, an epoch's
// records are all trained, each once.

#include <map>

#include <speedo/base/random.hpp>

#include "data/datum_batch_reader.hpp"
#include "data_support.hpp"
#include "support/random_seed.hpp"

namespace speedo {
namespace {

constexpr std::int64_t kShardedRecords = 60, kBatch = 4;
constexpr std::uint64_t kEpochBatches = kShardedRecords / kBatch;

std::unique_ptr<BatchReader> worker_reader(std::uint64_t first_record = 0) {
  caffe::TransformationParameter none;
  auto transformer = Transformer::create(none, Phase::kTrain, {});
  REQUIRE(transformer);
  auto reader = DatumBatchReader::create(
      std::make_unique<MemorySource>(numbered_records(kShardedRecords, 1, 1, 1)), *transformer,
      {.batch_size = kBatch, .with_labels = true, .first_record = first_record, .seed = 1});
  REQUIRE(reader);
  return std::move(reader).value();
}

// Adds the labels of a batch to what was seen.
void train(BatchReader& reader, std::uint64_t batch, std::map<float, int>& seen) {
  BatchTops tops;
  REQUIRE(tops.fit(reader.shapes()));
  REQUIRE(reader.read(batch, 0, tops));
  for (const float label : tops[1]) ++seen[label];
}

void check_each_seen(const std::map<float, int>& seen, int times) {
  CHECK(seen.size() == static_cast<std::size_t>(kShardedRecords));
  for (const auto& [label, count] : seen) CHECK(count == times);
}

TEST_CASE("N workers that take batches in turn cover every epoch, each record once") {
  for (const std::uint64_t workers : {1U, 2U, 3U, 4U, 7U}) {
    std::vector<std::unique_ptr<BatchReader>> readers;
    for (std::uint64_t worker = 0; worker < workers; ++worker) readers.push_back(worker_reader());
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      std::map<float, int> seen;
      for (std::uint64_t i = 0; i < kEpochBatches; ++i) {
        const std::uint64_t batch = epoch * kEpochBatches + i;
        train(*readers[batch % workers], batch, seen);
      }
      check_each_seen(seen, 1);
    }
  }
}

TEST_CASE("leases of any length to workers that come and go still cover the stream") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({7})));
  CAPTURE(seed);
  Random random(seed);
  std::vector<std::unique_ptr<BatchReader>> readers;
  for (int worker = 0; worker < 5; ++worker) readers.push_back(worker_reader());
  std::map<float, int> seen;
  std::uint64_t next = 0;
  std::size_t alive = 2;
  constexpr std::uint64_t kEpochs = 4;
  while (next < kEpochs * kEpochBatches) {
    if (random.below(4) == 0) alive = 1 + static_cast<std::size_t>(random.below(5));
    BatchReader& reader = *readers[static_cast<std::size_t>(random.below(alive))];
    const std::uint64_t lease = std::min(1 + random.below(6), kEpochs * kEpochBatches - next);
    for (std::uint64_t i = 0; i < lease; ++i) train(reader, next++, seen);
  }
  check_each_seen(seen, kEpochs);
}

TEST_CASE("any stretch of the stream as long as an epoch holds each record once") {
  auto reader = worker_reader();
  for (const std::uint64_t first : {1U, 7U, 1000003U}) {
    std::map<float, int> seen;
    for (std::uint64_t i = 0; i < kEpochBatches; ++i) train(*reader, first + i, seen);
    check_each_seen(seen, 1);
  }
}

TEST_CASE("workers that start at k/N of the data see different parts first, and all in an epoch") {
  constexpr std::uint64_t kWorkers = 4;
  std::map<float, int> first_quarter;
  for (std::uint64_t worker = 0; worker < kWorkers; ++worker) {
    auto reader = worker_reader(worker * kShardedRecords / kWorkers);
    std::map<float, int> own;
    for (std::uint64_t batch = 0; batch < kEpochBatches; ++batch) train(*reader, batch, own);
    check_each_seen(own, 1);
    for (std::uint64_t batch = 0; batch < 3; ++batch) train(*reader, batch, first_quarter);
  }
  // 3 batches of 4 records by each of 4 workers: 48 different records.
  CHECK(first_quarter.size() == 48);
}

}  // namespace
}  // namespace speedo
