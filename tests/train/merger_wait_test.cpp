// A merger whose store is away for a while.

#include <speedo/store/memory_store.hpp>

#include "failing_store.hpp"
#include "merger_fixture.hpp"
#include "support/poll.hpp"

namespace speedo::test {
namespace {

std::shared_ptr<FailingStore> failing_store() {
  return std::make_shared<FailingStore>(make_memory_store());
}

}  // namespace

TEST_CASE("a merge waits for a store that is out of reach, and happens once it is back",
          "[merger]") {
  const auto when = GENERATE(FailingStore::When::kBefore, FailingStore::When::kAfter);
  const auto kind = GENERATE(UpdateKind::kFullDelta, UpdateKind::kGradientOnly);
  const auto store = failing_store();
  MergerFixture ideal(config_of({.kind = kind}), kManyChunks);
  MergerFixture fixture(config_of({.kind = kind}), kManyChunks, store);
  for (MergerFixture* each : {&ideal, &fixture}) {
    each->contribute(0, 1, 0.01F);
    each->contribute(1, 1, 0.01F);
  }
  store->fail_at(3, when);
  fixture.merge_or_fail({{0, 1}, {1, 1}}, true);
  REQUIRE(store->has_failed());
  ideal.merge_or_fail({{0, 1}, {1, 1}}, true);
  REQUIRE((fixture.stored(1) == ideal.stored(1)));
  REQUIRE((fixture.copy().weights == ideal.copy().weights));
}

TEST_CASE("the entering of a stage waits likewise", "[merger]") {
  const auto store = failing_store();
  const UpdateSpec deltas{}, gradients{.kind = UpdateKind::kGradientOnly};
  MergerConfig config;
  config.stages = {deltas, gradients};
  MergerFixture fixture(config, kManyChunks, store);
  store->fail_at(1, FailingStore::When::kBefore);
  fixture.enter_or_fail(1);
  REQUIRE(store->has_failed());
}

TEST_CASE("a merger that is to wait no longer gives the store's error, and keeps its weights",
          "[merger]") {
  const auto store = failing_store();
  MergerFixture fixture(config_of({}), kManyChunks, store);
  fixture.contribute(0, 1, 0.01F);
  fixture.merger->stop_waiting();
  store->fail_at(1, FailingStore::When::kBefore);
  const auto failed = fixture.merge({{0, 1}}, false);
  REQUIRE_FALSE(failed);
  REQUIRE(failed.error().code == ErrorCode::kUnavailable);
  REQUIRE((fixture.copy().weights == fixture.start));
  fixture.merge_or_fail({{0, 1}}, false);
}

TEST_CASE("replicas have the weights before their last merge until that is told", "[merger]") {
  const UpdateSpec replicated{
      .kind = UpdateKind::kGradientOnly, .replicated = true, .factors = false};
  const auto merge_last = [](MergerFixture& fixture) {
    MergeJob job = fixture.job({{0, 1}}, true);
    job.is_last = true;
    std::promise<Result<MergeResult>> merged;
    fixture.merger->merge(std::move(job), [&](Result<MergeResult> result) {
      merged.set_value(std::move(result));
    });
    return merged.get_future().get();
  };
  MergerFixture ideal(config_of(replicated), 100);
  ideal.contribute(0, 1, 0.01F);
  require(merge_last(ideal));
  const Merger::Copy wanted = ideal.copy();
  std::uint64_t failures = 0;
  for (std::uint64_t operation = 1; failures + 1 == operation; ++operation) {
    CAPTURE(operation);
    const auto store = failing_store();
    MergerFixture fixture(config_of(replicated), 100, store);
    fixture.contribute(0, 1, 0.01F);
    const Merger::Copy before = fixture.copy();
    fixture.merger->stop_waiting();
    store->fail_at(operation, FailingStore::When::kBefore);
    const auto first = merge_last(fixture);
    if (store->has_failed()) {
      ++failures;
      REQUIRE_FALSE(first);
      const Merger::Copy now = fixture.copy();
      REQUIRE(now.version == before.version);
      REQUIRE((now.weights == before.weights && now.histories == before.histories));
      require(merge_last(fixture));
    }
    REQUIRE(fixture.copy().version == wanted.version);
    REQUIRE((fixture.copy().weights == wanted.weights));
  }
  REQUIRE(failures >= 3);
}

TEST_CASE("while it waits, a merger says for what", "[merger]") {
  const auto store = failing_store();
  MergerFixture fixture(config_of({}), kManyChunks, store);
  fixture.contribute(0, 1, 0.01F);
  REQUIRE_FALSE(fixture.merger->waits_because());
  store->refuse_writes(true);
  std::promise<Result<MergeResult>> merged;
  fixture.merger->merge(fixture.job({{0, 1}}, false),
                        [&](Result<MergeResult> result) { merged.set_value(std::move(result)); });
  std::string why;
  poll_until([&] {
    if (const auto error = fixture.merger->waits_because()) why = error->message;
    return !why.empty();
  });
  store->refuse_writes(false);
  REQUIRE(why == "a failure made by the test");
  require(merged.get_future().get());
  REQUIRE_FALSE(fixture.merger->waits_because());
}

TEST_CASE("errors that time does not mend are not waited for", "[merger]") {
  const auto store = failing_store();
  MergerFixture fixture(config_of({}), kManyChunks, store);
  fixture.contribute(0, 1, 0.01F);
  store->fail_at(1, FailingStore::When::kBefore, ErrorCode::kFull);
  const auto failed = fixture.merge({{0, 1}}, false);
  REQUIRE_FALSE(failed);
  REQUIRE(failed.error().code == ErrorCode::kFull);
}

}  // namespace speedo::test
