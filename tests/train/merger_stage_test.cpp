// The merger's other kinds of update, its stages and checkpoints: what is published, and what is
// left after a failure of the store at any point.

#include <cmath>

#include <speedo/store/memory_store.hpp>
#include <speedo/train/merge.hpp>

#include "support/kernels.hpp"
#include "train/failing_store.hpp"
#include "train/merge/merger_engine.hpp"
#include "train/merger_fixture.hpp"

namespace speedo::test {
namespace {

constexpr UpdateSpec kGradients{.kind = UpdateKind::kGradientOnly};
constexpr UpdateSpec kAveraged{.updater = UpdaterState::kAverage};
constexpr UpdateSpec kDeltas{};

std::vector<float> joined(const Merger::Copy& copy) {
  std::vector<float> all = copy.weights;
  for (const auto& history : copy.histories) all.insert(all.end(), history.begin(), history.end());
  return all;
}

// All that a master has, as of one version.
struct Whole {
  std::uint64_t version = 0;
  std::vector<float> values;
  std::string state;
  bool operator==(const Whole&) const = default;
};

template <class T>
ErrorCode code_of(const Result<T>& result) {
  REQUIRE_FALSE(result.has_value());
  return result.error().code;
}

Whole whole_of(const Merger::Copy& copy) { return {copy.version.value, joined(copy), copy.state}; }

// What the store has under a key; a reader finds it whole or not at all.
std::optional<Whole> stored_whole(RecordStore& store, const std::string& key) {
  auto reader = store.read(key);
  if (!reader) {
    REQUIRE(reader.error().code == ErrorCode::kNotFound);
    return std::nullopt;
  }
  const RecordInfo info = (*reader)->info();
  Whole whole{info.version, std::vector<float>(info.element_count), info.state};
  require(get(store, key, info.model, whole.values));
  return whole;
}

// An engine without a thread, so that the operations of the store can be counted.
struct EngineFixture {
  explicit EngineFixture(const std::vector<UpdateSpec>& stages, std::uint64_t term = 0) {
    MergerFixture parts(config_of(kDeltas), 1000);
    layout = parts.layout;
    elements = parts.elements;
    weights = parts.start;
    auto made = MergerEngine::create(
        {.stages = stages, .term = term, .threads = 1}, layout, parts.solver,
        {.version = Version{0}, .weights = weights, .histories = {}, .session = {}}, store,
        [] { return Result<std::unique_ptr<Backend>>(test::make_backend(0)); });
    require(made);
    engine = std::move(*made);
  }

  void contribute(std::uint64_t worker, std::uint64_t run, std::size_t histories) {
    RecordInfo info;
    info.model = layout.digest();
    info.version = run;
    info.worker = worker;
    const auto values = random_floats(elements * (1 + histories), 0.1F, 10 + 100 * worker + run);
    require(put(*inner, contribution_key(0, worker), info, values));
  }

  Result<MergeResult> merge(std::uint32_t stage, const std::string& state) {
    MergeJob job{};
    job.contributions = {{WorkerId{0}, RunId{1}, 1.0F}, {WorkerId{1}, RunId{1}, 1.0F}};
    job.mean = true;
    job.stage = stage;
    job.state = state;
    auto result = engine->merge(job);
    engine->write_checkpoint(false);
    return result;
  }

  std::shared_ptr<ParameterStore> inner = make_memory_store();
  std::shared_ptr<FailingStore> store = std::make_shared<FailingStore>(inner);
  ParameterLayout layout;
  std::size_t elements = 0;
  std::vector<float> weights;
  std::unique_ptr<MergerEngine> engine;
};

}  // namespace

TEST_CASE("elastic differences are summed, mean or not", "[merger]") {
  const bool mean = GENERATE(true, false);
  MergerFixture fixture(
      config_of({.kind = UpdateKind::kElastic, .moving_rate = 0.5F, .factor = 7.0F, .skip = 1.0F}),
      kManyChunks);
  const auto a = fixture.contribute(0, 1, 0.01F), b = fixture.contribute(1, 1, 0.01F);
  fixture.merge_or_fail({{0, 1}, {1, 1}}, mean);
  const auto merged = fixture.stored(1);
  bool same = true;
  for (std::size_t i = 0; i < merged.size(); ++i) {
    same = same && merged[i] == fixture.start[i] + a[i] + b[i];
  }
  REQUIRE(same);
}

TEST_CASE("SpeeDO's elastic form gives each worker back what is left of its weights", "[merger]") {
  const int threads = GENERATE(1, 3);
  constexpr float kRate = 0.3F;
  MergerConfig config = config_of({.kind = UpdateKind::kElasticMaster, .moving_rate = kRate});
  config.threads = threads;
  MergerFixture fixture(config, kManyChunks);
  const std::vector<std::vector<float>> x = {fixture.contribute(0, 5, 1.0F),
                                             fixture.contribute(1, 6, 1.0F)};
  fixture.merge_or_fail({{1, 6}, {0, 5}}, true);
  std::vector<float> expected = fixture.start;
  for (const std::size_t worker : {1U, 0U}) {
    std::vector<float> own = x[worker], e(own.size());
    elastic_difference(fixture.start, kRate, own, e);
    for (std::size_t i = 0; i < e.size(); ++i) expected[i] += e[i];
    std::vector<float> back(own.size());
    const auto info = get(*fixture.store, local_key(0, worker), fixture.layout.digest(), back);
    require(info);
    REQUIRE(info->version == 5 + worker);
    REQUIRE(info->worker == worker);
    REQUIRE((back == own));
  }
  REQUIRE((fixture.stored(1) == expected));
}

TEST_CASE("elastic weights that are not finite leave no trace", "[merger]") {
  const UpdateKind kind = GENERATE(UpdateKind::kElastic, UpdateKind::kElasticMaster);
  MergerFixture fixture(config_of({.kind = kind, .moving_rate = 0.5F}), kManyChunks);
  fixture.contribute(0, 1, 1.0F);
  std::vector<float> bad(kManyChunks, 0.5F);
  bad.back() = NAN;
  fixture.put_contribution(1, fixture.info(1, 1), bad);
  REQUIRE(fixture.merge_or_fail({{1, 1}, {0, 1}}, true).rejected == std::vector{WorkerId{1}});
  const auto merged = fixture.copy().weights;
  MergerFixture other(config_of({.kind = kind, .moving_rate = 0.5F}), kManyChunks);
  other.contribute(0, 1, 1.0F);
  other.merge_or_fail({{0, 1}}, true);
  REQUIRE((merged == other.copy().weights));
  REQUIRE_FALSE(fixture.store->read(local_key(0, 1)));
}

TEST_CASE("averaged updaters are one longer record", "[merger]") {
  MergerFixture fixture(config_of(kAveraged), kChunkElements - 16);
  REQUIRE((fixture.stored(0, 1).back() == 0.0F));
  std::vector<float> expected(fixture.stored(0, 1));
  for (std::uint64_t run = 1; run <= 3; ++run) {
    const auto change = random_floats(expected.size(), 0.1F, run);
    fixture.put_contribution(0, fixture.info(0, run), change);
    fixture.state = "after " + std::to_string(run);
    fixture.merge_or_fail({{0, run}}, true);
    for (std::size_t i = 0; i < change.size(); ++i) expected[i] += change[i];
    REQUIRE((fixture.stored(run, 1) == expected));
  }
  const Merger::Copy copy = fixture.copy();
  REQUIRE((joined(copy) == expected));
  REQUIRE(copy.state == "after 3");
  // The published record has everything: there is no checkpoint.
  REQUIRE_FALSE(fixture.store->read(checkpoint_key()));
  // A contribution of weights alone is of another stage.
  fixture.put_contribution(0, fixture.info(0, 9), random_floats(fixture.elements, 0.1F, 9));
  REQUIRE(fixture.merge_or_fail({{0, 9}}, true).rejected.size() == 1);
}

TEST_CASE("the rate of the master's rule is scaled for one merge", "[merger]") {
  MergerFixture fixture(config_of(kGradients), 1000);
  fixture.contribute(0, 1, 0.1F);
  fixture.lr_scale = 0.0F;
  fixture.merge_or_fail({{0, 1}}, true);
  REQUIRE(fixture.copy().weights == fixture.start);
  fixture.contribute(0, 2, 0.1F);
  fixture.lr_scale = 1.0F;
  fixture.merge_or_fail({{0, 2}}, true);
  MergerFixture plain(config_of(kGradients), 1000);
  plain.contribute(0, 2, 0.1F);
  plain.merge_or_fail({{0, 2}}, true);
  REQUIRE(fixture.copy().weights == plain.copy().weights);
}

TEST_CASE("every published version carries its state", "[merger]") {
  const UpdateSpec update = GENERATE(values<UpdateSpec>({kDeltas, kGradients}));
  MergerFixture fixture(config_of(update), 1000);
  fixture.enter_or_fail(0, "the start");
  REQUIRE(fixture.store->read(weights_key()).value()->info().state == "the start");
  fixture.contribute(0, 1, 0.01F);
  fixture.state = std::string("merge\0one", 9);
  fixture.merge_or_fail({{0, 1}}, false);
  fixture.copy();
  REQUIRE(fixture.store->read(weights_key()).value()->info().state == fixture.state);
  if (update.kind == UpdateKind::kGradientOnly) {
    REQUIRE(fixture.store->read(checkpoint_key()).value()->info().state == fixture.state);
  }
  // Weights that are published again keep it.
  fixture.map->set_image({});
  const std::string merged = fixture.state;
  fixture.state = "never";
  REQUIRE(fixture.merge_or_fail({{0, 7}}, false).rejected.size() == 1);
  REQUIRE(fixture.store->read(weights_key()).value()->info().state == merged);
  if (update.kind == UpdateKind::kGradientOnly) {
    REQUIRE(fixture.store->read(checkpoint_key()).value()->info().state == merged);
  }
}

TEST_CASE("a checkpoint of an earlier job goes with the first merge, not before", "[merger]") {
  const auto map = std::make_shared<MemoryKeyValue>();
  const auto store = std::make_shared<ChunkedStore>(map, "m");
  { MergerFixture gradients(config_of(kGradients), 1000, store); }
  require(store->read(checkpoint_key()));
  MergerFixture deltas(config_of(kDeltas), 1000, store);
  require(store->read(checkpoint_key()));
  deltas.contribute(0, 7, 0.1F);
  deltas.merge_or_fail({{0, 7}}, false);
  REQUIRE_FALSE(store->read(checkpoint_key()));
}

TEST_CASE("histories that are not the rule's are refused", "[merger]") {
  MergerFixture parts(config_of(kDeltas), 1000);
  Checkpoint start{.version = Version{0},
                   .weights = parts.start,
                   .histories = {2, parts.start},
                   .session = {}};
  const auto make = [&](const UpdateSpec& update) {
    return make_merger(config_of(update), parts.layout, parts.solver, start, parts.store);
  };
  const auto two = make(kAveraged);
  REQUIRE_FALSE(two);
  REQUIRE(two.error().code == ErrorCode::kMismatch);
  start.histories = {std::vector<float>(7)};
  REQUIRE_FALSE(make(kAveraged));
  // Nobody asks for them.
  require(make(kDeltas));
}

TEST_CASE("a store that fails anywhere leaves the old or the new version, whole", "[merger]") {
  const auto when = GENERATE(FailingStore::When::kBefore, FailingStore::When::kAfter);
  const UpdateSpec update = GENERATE(values<UpdateSpec>(
      {kDeltas, kGradients, kAveraged,
       UpdateSpec{.kind = UpdateKind::kElasticMaster, .moving_rate = 0.5F}}));
  const UpdateSpec second = GENERATE(values<UpdateSpec>({kGradients, kAveraged, kDeltas}));
  const bool enters = GENERATE(true, false);
  CAPTURE(static_cast<int>(when), static_cast<int>(update.kind), static_cast<int>(update.updater),
          enters);
  const std::size_t histories = averages_histories(update) ? 1 : 0;
  for (std::uint64_t k = 1;; ++k) {
    REQUIRE(k < 100);
    CAPTURE(k);
    EngineFixture fixture({update, second});
    require(fixture.engine->enter_stage(0, "old"));
    for (const std::uint64_t worker : {0U, 1U}) fixture.contribute(worker, 1, histories);
    const Whole old = whole_of(fixture.engine->copy());

    fixture.store->fail_at(k, when);
    const bool done = enters ? fixture.engine->enter_stage(1, "new").has_value()
                             : fixture.merge(0, "new").has_value();
    const bool failed = fixture.store->has_failed();
    fixture.store->fail_at(0, when);
    const Whole now = whole_of(fixture.engine->copy());
    if (!done) REQUIRE(now == old);
    if (done) REQUIRE(now.state == "new");

    // The same work without the failure.
    EngineFixture ideal({update, second});
    require(ideal.engine->enter_stage(0, "old"));
    for (const std::uint64_t worker : {0U, 1U}) ideal.contribute(worker, 1, histories);
    const auto old_weights = stored_whole(*ideal.inner, weights_key());
    const auto old_checkpoint = stored_whole(*ideal.inner, checkpoint_key());
    if (enters) {
      require(ideal.engine->enter_stage(1, "new"));
    } else {
      require(ideal.merge(0, "new"));
    }
    const auto weights = stored_whole(*fixture.inner, weights_key());
    const bool old_or_new_weights =
        weights == old_weights || weights == stored_whole(*ideal.inner, weights_key());
    REQUIRE(old_or_new_weights);
    const auto checkpoint = stored_whole(*fixture.inner, checkpoint_key());
    const bool old_or_new_checkpoint =
        checkpoint == old_checkpoint || checkpoint == stored_whole(*ideal.inner, checkpoint_key());
    REQUIRE(old_or_new_checkpoint);
    if (done) REQUIRE(now == whole_of(ideal.engine->copy()));

    // It can be done again, and then it is as if nothing had been.
    if (!done) {
      if (enters) {
        require(fixture.engine->enter_stage(1, "new"));
      } else {
        require(fixture.merge(0, "new"));
      }
      REQUIRE(whole_of(fixture.engine->copy()) == whole_of(ideal.engine->copy()));
    }
    if (!failed) break;
  }
}

TEST_CASE("a checkpoint that could not be written is written after the next merge", "[merger]") {
  EngineFixture fixture({kGradients});
  require(fixture.engine->enter_stage(0, "start"));
  for (const std::uint64_t worker : {0U, 1U}) fixture.contribute(worker, 1, 0);
  for (std::uint64_t k = 1; k < 100; ++k) {
    fixture.store->fail_at(k, FailingStore::When::kBefore);
    const std::string state = "merge " + std::to_string(k);
    const auto merged = fixture.merge(0, state);
    const bool failed = fixture.store->has_failed();
    fixture.store->fail_at(0, FailingStore::When::kBefore);
    if (!failed) break;
    if (!merged) continue;
    // The only operation left: the checkpoint's manifest.
    REQUIRE(stored_whole(*fixture.inner, checkpoint_key())->state != state);
    require(fixture.merge(0, "next"));
    REQUIRE(stored_whole(*fixture.inner, checkpoint_key()) ==
            whole_of(fixture.engine->copy()));
    return;
  }
  FAIL("no checkpoint failed");
}

TEST_CASE("a master that was superseded writes nothing more", "[merger]") {
  const UpdateSpec update = GENERATE(values<UpdateSpec>({kDeltas, kGradients}));
  EngineFixture fixture({update});
  ParameterStore& store = *fixture.inner;
  const auto take = [&](const std::string& holder) {
    MasterClaim claim;
    claim.holder = holder;
    claim.time = std::chrono::minutes(1);
    claim.force = true;
    const auto answer = store.claim_master(claim);
    require(answer);
    return answer->term;
  };
  store.fence(take("old 1 1"));
  require(fixture.engine->enter_stage(0, "start"));
  for (const std::uint64_t worker : {0U, 1U}) fixture.contribute(worker, 1, 0);
  const Whole before = whole_of(fixture.engine->copy());
  take("new 2 2");

  REQUIRE(code_of(fixture.merge(0, "next")) == ErrorCode::kSuperseded);
  REQUIRE(whole_of(fixture.engine->copy()) == before);
  // The new master empties the store, and nothing would keep the old one from filling it again.
  store.fence(0);
  require(store.clear());
  require(fixture.engine->restore_lost_weights());
  fixture.engine->write_checkpoint(false);
  REQUIRE(code_of(fixture.merge(0, "next")) == ErrorCode::kSuperseded);
  REQUIRE(code_of(fixture.engine->enter_stage(0, "next")) == ErrorCode::kSuperseded);
  fixture.engine->close();
  REQUIRE_FALSE(store.read(weights_key()));
  REQUIRE_FALSE(store.read(checkpoint_key()));
}

TEST_CASE("an earlier master's weights, whatever their version, are not this one's", "[merger]") {
  EngineFixture fixture({kDeltas}, 5);
  ParameterStore& store = *fixture.inner;
  store.fence(5);
  require(fixture.engine->enter_stage(0, "start"));
  const std::uint64_t version = fixture.engine->copy().version.value;
  // As a store has them that comes back without what came after, terms too.
  store.fence(0);
  RecordInfo info = (*store.read(weights_key()))->info();
  info.version = version + 5000;
  require(put(store, weights_key(), info, std::vector<float>(info.element_count, 0.5F)));
  store.fence(5);
  require(fixture.engine->restore_lost_weights());
  const auto there = (*store.read(weights_key()))->info();
  CHECK(there.term == 5);
  CHECK(there.version == version);
}

}  // namespace speedo::test
