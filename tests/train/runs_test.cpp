#include "train/session/runs.hpp"

#include <chrono>

#include "support/catch.hpp"

namespace speedo {

namespace {

TrainedMessage report_of(std::uint64_t worker, RunId run, std::uint64_t samples,
                         std::uint64_t compute_us) {
  TrainedMessage message;
  message.worker = worker;
  message.run = run.value;
  message.samples = samples;
  message.phases.forward_us = compute_us;
  return message;
}

}  // namespace

TEST_CASE("runs are numbered without a gap, above those of earlier masters, one a worker") {
  Runs runs(100);
  runs.begin_above(90);
  CHECK(runs.next() == RunId{100});
  runs.begin_above(120);
  CHECK(runs.start({0}, {}).run == RunId{120});
  CHECK(runs.start({1}, {}).run == RunId{121});
  CHECK(runs.is_under_way({0}, {120}));
  CHECK(!runs.is_under_way({0}, {121}));
  runs.finish({0}, report_of(0, {120}, 1, 1));
  CHECK(!runs.is_busy({0}));
  CHECK(runs.any_under_way());
  CHECK(runs.remove({1}, {}));
  CHECK(!runs.any_under_way());
  CHECK(!runs.remove({2}, {}));  // was never given a run
}

TEST_CASE("a run is stalled when its own progress stands still, not by beats alone") {
  Runs runs(1);
  const std::chrono::seconds limit(10);
  CHECK(!runs.stalled({0}, std::chrono::seconds(99), limit));
  runs.start({0}, std::chrono::seconds(0));
  runs.beat({0}, {0, 1, 5}, std::chrono::seconds(6));
  runs.beat({0}, {0, 1, 5}, std::chrono::seconds(12));  // the same progress
  runs.beat({0}, {0, 2, 6}, std::chrono::seconds(12));  // another run
  CHECK(!runs.stalled({0}, std::chrono::seconds(15), limit));
  CHECK(runs.stalled({0}, std::chrono::seconds(16), limit) == RunId{1});
  CHECK(!runs.stalled({0}, std::chrono::seconds(16), std::chrono::seconds(0)));
  runs.beat({0}, {0, 1, 6}, std::chrono::seconds(16));
  CHECK(!runs.stalled({0}, std::chrono::seconds(25), limit));
  runs.finish({0}, report_of(0, {1}, 1, 1));
  CHECK(!runs.stalled({0}, std::chrono::seconds(99), limit));
}

TEST_CASE("a worker learns once, with its next order, that its contribution was merged") {
  Runs runs(1);
  CHECK(runs.start({0}, {}).merged_run == kNoRun);
  runs.finish({0}, report_of(0, {1}, 1, 1));
  runs.merged({0}, {1}, 0.5F);
  runs.merged({7}, {9}, 1.0F);  // is gone
  const Runs::Order next = runs.start({0}, {});
  CHECK(next.merged_run == 1);
  CHECK(next.merged_weight == 0.5F);
  runs.finish({0}, report_of(0, {2}, 1, 1));
  CHECK(runs.start({0}, {}).merged_run == kNoRun);
}

TEST_CASE("a process that comes back learns what was merged of it as another worker") {
  Runs runs(1);
  const ProcessUuid process{1, 2}, another{1, 3};
  for (const std::uint64_t worker : {0, 1, 2}) {
    const RunId run = runs.start({worker}, {}).run;
    runs.finish({worker}, report_of(worker, run, 1, 1));
  }
  runs.merged({0}, {1}, 0.5F);
  runs.remove({0}, process);
  runs.remove({1}, another);
  runs.remove({2}, {});  // says no process
  runs.merged({1}, {2}, 0.25F);  // under way when it went
  runs.merged({2}, {3}, 1.0F);
  runs.arrive({3}, another);
  CHECK(runs.start({3}, {}).merged_run == 2);
  runs.arrive({4}, process);
  const Runs::Order order = runs.start({4}, {});
  CHECK(order.merged_run == 1);
  CHECK(order.merged_weight == 0.5F);
  runs.remove({4}, process);  // the order may not have come
  runs.arrive({7}, process);
  CHECK(runs.start({7}, {}).merged_run == 1);
  runs.arrive({5}, {});
  CHECK(runs.start({5}, {}).merged_run == kNoRun);
  runs.arrive({6}, process);  // once
  CHECK(runs.start({6}, {}).merged_run == kNoRun);
}

TEST_CASE("shards follow the speed over the slowest worker's, rounded and bounded") {
  Runs runs(1);
  const auto train = [&](std::uint64_t worker, std::uint64_t compute_us) {
    const RunId run = runs.start({worker}, {}).run;
    runs.finish({worker}, report_of(worker, run, 10, compute_us));
  };
  train(0, 1000);
  train(1, 400);
  train(2, 1);
  train(3, 0);  // cannot be measured
  CHECK(runs.shards_by_speed({0}) == 1);
  CHECK(runs.shards_by_speed({1}) == 3);
  CHECK(runs.shards_by_speed({2}) == kShardsPerRunMax);
  CHECK(runs.shards_by_speed({3}) == 1);
  CHECK(runs.shards_by_speed({4}) == 1);
  runs.remove({0}, {});
  CHECK(runs.shards_by_speed({1}) == 1);
}

}  // namespace speedo
