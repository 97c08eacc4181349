// What a trainer reads from the store when the store is not what it was.
#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "support/catch.hpp"

#include <speedo/base/platform.hpp>
#include <speedo/store/layout.hpp>
#include <speedo/store/memory_store.hpp>

#include "store/chunk_range.hpp"
#include "store/chunked_store.hpp"
#include "store/memory_key_value.hpp"
#include "train/trainer/trainer_exchange.hpp"

namespace speedo {
namespace {

constexpr Digest kModel{.high = 1, .low = 2};
constexpr std::uint64_t kOrdered = 7, kTerm = 3;
constexpr std::size_t kCount = 8;

struct Exchanged {
  std::shared_ptr<MemoryKeyValue> map = std::make_shared<MemoryKeyValue>();
  std::shared_ptr<ChunkedStore> store = std::make_shared<ChunkedStore>(map, "m");
  std::atomic<std::uint64_t> progress{0};
  TrainerCodec codec;
  RecordExchange exchange{
      {.store = store,
       .model = kModel,
       .worker = WorkerId{0},
       .term = kTerm,
       .contribution = contribution_key(0, 0),
       .codec = codec,
       .platform = real_platform()},
      progress};
  std::vector<float> target = std::vector<float>(kCount);

  void put_weights(std::uint64_t version, std::size_t count, std::uint64_t term = kTerm) {
    store->fence(term);
    RecordInfo info;
    info.model = kModel;
    info.version = version;
    info.element_count = count;
    REQUIRE(put(*store, weights_key(), info, std::vector<float>(count, 1.0F)));
  }
  // The second look at the weights finds the run cancelled.
  void cancel_after_one_look() {
    exchange.allow_cancel([looks = 0]() mutable { return looks++ > 0; });
  }
  // What is there is not the weights; it is waited for them, and they are read once they are there.
  void check_waits_for_weights() {
    cancel_after_one_look();
    const auto info = exchange.begin_weights(kOrdered, target, {});
    REQUIRE_FALSE(info);
    CHECK(info.error().code == ErrorCode::kUnavailable);  // cancelled while it waited

    exchange.allow_cancel({});
    put_weights(kOrdered, kCount);
    CHECK(exchange.begin_weights(kOrdered, target, {}).value().version == kOrdered);
  }
};

TEST_CASE("weights of an earlier stage, to which a store fell back, are waited out") {
  Exchanged worker;
  worker.put_weights(kOrdered - 1, 2 * kCount);
  worker.check_waits_for_weights();
}

TEST_CASE("weights of an earlier master, to which a store fell back, are waited out") {
  Exchanged worker;
  worker.put_weights(kOrdered + 5000, kCount, kTerm - 1);
  worker.check_waits_for_weights();
}

TEST_CASE("weights that another program wrote over are waited out") {
  Exchanged worker;
  auto foreign = std::make_shared<KvOperation>();
  foreign->kind = KvOperation::Kind::kSet;
  foreign->key = "speedo:{m}:" + weights_key() + ":m";
  foreign->head = "of another program";
  worker.map->submit(foreign);
  foreign->wait();
  REQUIRE_FALSE(foreign->error);
  worker.check_waits_for_weights();
}

TEST_CASE("weights as new as ordered, but of another size, are refused") {
  Exchanged worker;
  worker.put_weights(kOrdered, 2 * kCount);
  const auto info = worker.exchange.read_weights(kOrdered, worker.target);
  REQUIRE_FALSE(info);
  CHECK(info.error().code == ErrorCode::kMismatch);
  CHECK(info.error().message == "record 'weights' has 16 floats, expected 8");
}

TEST_CASE("a worker's own weights of an earlier run are none") {
  Exchanged worker;
  worker.put_weights(kOrdered - 1, kCount);
  const auto info = worker.exchange.read(weights_key(), worker.target, kOrdered);
  REQUIRE_FALSE(info);
  CHECK(info.error().code == ErrorCode::kNotFound);
}

// The newest weights, written chunk by chunk, while a worker with its contribution under way
// expects them.
struct Expected : Exchanged {
  static constexpr std::size_t kFloats = 2 * kChunkElements + 8;
  static constexpr float kUntouched = -1.0F;
  static constexpr std::uint64_t kNext = kOrdered + 1;

  Expected() {
    target.assign(kFloats, kUntouched);
    const auto form = [this](std::size_t offset, std::size_t count) {
      return std::span(gradients).subspan(offset, count);
    };
    exchange.begin_contribution(1, kOrdered, kFloats, form);
    exchange.expect(weights_key(), {.version = kNext, .term = kTerm, .element_count = kFloats},
                    target, true);
  }
  std::unique_ptr<RecordWriter> begin() {
    store->fence(kTerm);
    RecordInfo info;
    info.model = kModel;
    info.version = kNext;
    info.element_count = kFloats;
    return store->write(weights_key(), info);
  }
  static void write(RecordWriter& writer, const std::vector<float>& values) {
    for (std::size_t chunk = 0; chunk < chunk_count(kFloats); ++chunk) {
      writer.write(chunk, chunk_of(std::span<const float>(values), chunk));
    }
  }
  void add_chunk(std::size_t chunk) {
    exchange.add(chunk * kChunkElements, chunk_elements(kFloats, chunk));
  }
  void await_chunk(std::size_t chunk) {
    for (int i = 0; i < 10000; ++i) {
      if (exchange.has_come(chunk * kChunkElements, 1)) return;
      REQUIRE(exchange.advance());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    FAIL("chunk " << chunk << " does not come");
  }

  std::vector<float> gradients = std::vector<float>(kFloats);
};

TEST_CASE("expected weights are read while they are written, where the worker is done with them") {
  Expected worker;
  const std::vector<float> values(Expected::kFloats, 3.0F);
  const auto writer = worker.begin();
  Expected::write(*writer, values);
  worker.add_chunk(2);
  worker.await_chunk(2);
  CHECK(worker.target[2 * kChunkElements] == 3.0F);
  CHECK(worker.target[2 * kChunkElements - 1] == Expected::kUntouched);
  CHECK_FALSE(worker.exchange.has_come(kChunkElements, 1));

  REQUIRE(writer->finish());
  REQUIRE(worker.exchange.begin_weights(Expected::kNext, worker.target, {}));
  CHECK(worker.exchange.were_here(2 * kChunkElements, 8));
  CHECK_FALSE(worker.exchange.were_here(kChunkElements, kChunkElements + 8));
  REQUIRE(worker.exchange.need_weights(0, Expected::kFloats));
  CHECK(worker.target == values);
}

TEST_CASE("what came of expected weights that were made anew is read again") {
  Expected worker;
  auto writer = worker.begin();
  Expected::write(*writer, std::vector<float>(Expected::kFloats, 3.0F));
  for (const std::size_t chunk : {0, 1, 2}) worker.add_chunk(chunk);
  worker.await_chunk(0);
  writer = worker.begin();
  const std::vector<float> values(Expected::kFloats, 4.0F);
  Expected::write(*writer, values);
  REQUIRE(writer->finish());

  std::size_t arrived = 0;
  REQUIRE(worker.exchange.begin_weights(
      Expected::kNext, worker.target,
      [&](std::size_t, std::size_t count) { arrived += count; }));
  CHECK_FALSE(worker.exchange.were_here(0, 1));
  REQUIRE(worker.exchange.need_weights(0, Expected::kFloats));
  CHECK(worker.target == values);
  CHECK(arrived == Expected::kFloats);
}

TEST_CASE("weights of another version than expected are read as ever") {
  Expected worker;
  const auto writer = worker.begin();
  Expected::write(*writer, std::vector<float>(Expected::kFloats, 3.0F));
  worker.add_chunk(0);
  worker.await_chunk(0);
  worker.put_weights(Expected::kNext + 1, Expected::kFloats);
  REQUIRE(worker.exchange.begin_weights(Expected::kNext, worker.target, {}));
  CHECK_FALSE(worker.exchange.were_here(0, 1));
  REQUIRE(worker.exchange.need_weights(0, Expected::kFloats));
  CHECK(worker.target == std::vector<float>(Expected::kFloats, 1.0F));
  CHECK_FALSE(worker.exchange.advance());
}

}  // namespace
}  // namespace speedo
