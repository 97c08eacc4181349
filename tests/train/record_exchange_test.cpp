// What a trainer reads from the store when the store is not what it was.
#include <atomic>
#include <memory>
#include <vector>

#include "support/catch.hpp"

#include <speedo/base/platform.hpp>
#include <speedo/store/layout.hpp>
#include <speedo/store/memory_store.hpp>

#include "train/trainer_exchange.hpp"

namespace speedo {
namespace {

constexpr Digest kModel{.high = 1, .low = 2};
constexpr std::uint64_t kOrdered = 7;
constexpr std::size_t kCount = 8;

struct Exchanged {
  std::shared_ptr<RecordStore> store = make_memory_store();
  std::atomic<std::uint64_t> progress{0};
  TrainerCodec codec;
  RecordExchange exchange{
      {.store = store,
       .model = kModel,
       .worker = WorkerId{0},
       .contribution = contribution_key(0, 0),
       .codec = codec,
       .platform = real_platform()},
      progress};
  std::vector<float> target = std::vector<float>(kCount);

  void put_weights(std::uint64_t version, std::size_t count) {
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
};

TEST_CASE("weights of an earlier stage, to which a store fell back, are waited out") {
  Exchanged worker;
  worker.put_weights(kOrdered - 1, 2 * kCount);
  worker.cancel_after_one_look();
  const auto info = worker.exchange.begin_weights(kOrdered, worker.target, {});
  REQUIRE_FALSE(info);
  CHECK(info.error().code == ErrorCode::kUnavailable);  // cancelled while it waited

  worker.exchange.allow_cancel({});
  worker.put_weights(kOrdered, kCount);
  CHECK(worker.exchange.begin_weights(kOrdered, worker.target, {}).value().version == kOrdered);
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

}  // namespace
}  // namespace speedo
