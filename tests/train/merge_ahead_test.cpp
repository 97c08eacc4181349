// A merge that is begun while its contributions are still being written gives what it would have
// given afterwards, bit for bit, and leaves no trace if it is not the one that is ordered.

#include <algorithm>

#include "merger_fixture.hpp"
#include "store/chunk_range.hpp"
#include "train/merge/merger_engine.hpp"

namespace speedo::test {
namespace {

constexpr std::size_t kFloats = 16 * kChunkElements + 24;

// Counts what is asked of it without being read.
class LookedAtMap : public MemoryKeyValue {
 public:
  void submit(KvPtr operation) override {
    if (operation->kind == KvOperation::Kind::kGetStart) looks += 1;
    MemoryKeyValue::submit(std::move(operation));
  }
  int looks = 0;
};

// Contributions of two workers to the same run of a round, put chunk by chunk.
struct AheadFixture {
  explicit AheadFixture(const UpdateSpec& update, float clip = 0.0F) {
    ParameterSlot slot;
    slot.layer = "ip";
    slot.shape = Shape({static_cast<std::int64_t>(kFloats)});
    layout.add(slot);
    floats = static_cast<std::size_t>(layout.element_count());
    solver.set_base_lr(0.1F);
    solver.set_lr_policy("fixed");
    solver.set_momentum(0.9F);
    if (clip > 0.0F) solver.set_clip_gradients(clip);
    Checkpoint start;
    start.weights = random_floats(floats, 1.0F, 1);
    MergerConfig config = config_of(update);
    config.ahead_bytes_min = 0;
    auto made = MergerEngine::create(config, layout, solver, start, store, [] {
      return Result<std::unique_ptr<Backend>>(test::make_backend(0));
    });
    require(made);
    engine = std::move(*made);
    require(engine->enter_stage(0, ""));
    job.mean = true;
  }

  // A round of two workers begins; `seed` decides on their values.
  void begin_round(std::uint64_t run, std::uint64_t seed) {
    job.iteration = run;
    job.contributions.clear();
    writers.clear();
    written[0] = written[1] = 0;
    values.clear();
    for (const std::uint64_t worker : {1, 2}) {
      RecordInfo info;
      info.model = layout.digest();
      info.version = run + worker;
      info.worker = worker;
      info.element_count = floats;
      job.contributions.push_back({WorkerId{worker}, RunId{info.version}, 1.0F});
      values.push_back(random_floats(floats, 0.1F, 100 * seed + worker));
      writers.push_back(store->write(contribution_key(0, worker), info));
    }
  }
  // From the record's end, as backward passes make them.
  void put(std::size_t worker, std::size_t chunks) {
    std::size_t& next = written[worker];
    for (const std::size_t end = std::min(next + chunks, chunk_count(floats)); next < end;) {
      const std::size_t chunk = chunk_count(floats) - ++next;
      writers[worker]->write(chunk,
                             chunk_of(std::span<const float>(values[worker]), chunk));
    }
  }
  void finish_round() {
    for (std::size_t worker = 0; worker < writers.size(); ++worker) {
      put(worker, chunk_count(floats));
      require(writers[worker]->finish());
    }
  }
  MergeResult merge() {
    auto result = engine->merge(job);
    require(result);
    return *result;
  }
  void train_plainly(std::uint64_t run, std::uint64_t seed) {
    begin_round(run, seed);
    finish_round();
    REQUIRE(merge().rejected.empty());
  }

  ParameterLayout layout;
  std::size_t floats = 0;
  caffe::SolverParameter solver;
  std::shared_ptr<LookedAtMap> map = std::make_shared<LookedAtMap>();
  std::shared_ptr<ParameterStore> store = std::make_shared<ChunkedStore>(map, "m");
  std::unique_ptr<MergerEngine> engine;
  MergeJob job{};
  std::vector<std::vector<float>> values;
  std::vector<std::unique_ptr<RecordWriter>> writers;
  std::size_t written[2] = {0, 0};
};

void require_same(AheadFixture& a, AheadFixture& b) {
  const Merger::Copy one = a.engine->copy(), other = b.engine->copy();
  REQUIRE(one.version == other.version);
  REQUIRE(one.weights == other.weights);
  REQUIRE(one.histories == other.histories);
  std::vector<float> stored(a.floats);
  require(get(*a.store, weights_key(), a.layout.digest(), stored));
  REQUIRE(stored == one.weights);
}

UpdateSpec update_of(UpdateKind kind) {
  UpdateSpec update;
  update.kind = kind;
  update.factor = 2.0F;
  update.moving_rate = 0.3F;
  return update;
}

UpdateSpec any_update() {
  return update_of(GENERATE(UpdateKind::kFullDelta, UpdateKind::kGradientOnly,
                            UpdateKind::kElastic, UpdateKind::kElasticMaster));
}

// Chunks that the engine merges before they are asked for.
int merge_what_is_there(MergerEngine& engine) {
  int steps = 0;
  while (engine.merge_ahead()) ++steps;
  return steps;
}

TEST_CASE("a merge that waits for one worker asks for little") {
  AheadFixture ahead(update_of(UpdateKind::kGradientOnly));
  const auto looks_of_a_call = [&] {
    ahead.map->looks = 0;
    REQUIRE_FALSE(ahead.engine->merge_ahead());
    return ahead.map->looks;
  };
  const auto slots = static_cast<int>(policy_of(contribution_key(0, 1)).slots);
  const int chunks = 17, few = 3;
  REQUIRE(chunk_count(kFloats) == chunks);
  ahead.begin_round(10, 10);
  ahead.engine->expect(ahead.job);
  CHECK(looks_of_a_call() == 2 * few * slots);
  ahead.put(0, chunks);
  // Some are there, in a slot that is known then; so are all others, which are looked for once.
  CHECK(looks_of_a_call() == 2 * few * slots + chunks - few);
  CHECK(looks_of_a_call() == few * slots);
  ahead.put(1, 3);
  CHECK(merge_what_is_there(*ahead.engine) > 0);
  CHECK(looks_of_a_call() == 2);
  ahead.finish_round();
  CHECK(ahead.merge().begun_ahead);
}

TEST_CASE("a merge ahead of order gives the same, bit for bit") {
  const UpdateSpec update = any_update();
  const float clip = GENERATE(0.0F, 1.0F);
  AheadFixture ahead(update, clip), plain(update, clip);
  for (const std::uint64_t run : {10U, 20U, 30U}) {
    ahead.begin_round(run, run);
    ahead.engine->expect(ahead.job);
    CHECK(merge_what_is_there(*ahead.engine) == 0);
    ahead.put(0, 8);
    CHECK(merge_what_is_there(*ahead.engine) == 0);
    ahead.put(1, 3);
    CHECK(merge_what_is_there(*ahead.engine) > 0);
    ahead.put(1, 8);
    CHECK(merge_what_is_there(*ahead.engine) > 0);
    ahead.finish_round();
    if (run == 20) CHECK(merge_what_is_there(*ahead.engine) > 0);
    const MergeResult merged = ahead.merge();
    CHECK(merged.rejected.empty());
    CHECK(merged.begun_ahead);
    plain.train_plainly(run, run);
    require_same(ahead, plain);
  }
}

void merge_anew(AheadFixture& fixture) {
  const MergeResult merged = fixture.merge();
  CHECK(merged.rejected.empty());
  CHECK_FALSE(merged.begun_ahead);
}

TEST_CASE("what was read ahead counts only if it is what was committed") {
  const UpdateSpec update = any_update();
  AheadFixture ahead(update), plain(update);
  ahead.begin_round(10, 1);
  ahead.engine->expect(ahead.job);
  ahead.put(0, 4);
  ahead.put(1, 4);
  REQUIRE(merge_what_is_there(*ahead.engine) > 0);

  SECTION("a worker begins its run anew") {
    ahead.begin_round(10, 2);
    ahead.finish_round();
    merge_anew(ahead);
    plain.train_plainly(10, 2);
  }
  SECTION("another round is merged") {
    ahead.begin_round(20, 2);
    ahead.finish_round();
    merge_anew(ahead);
    plain.train_plainly(20, 2);
  }
  SECTION("one of them is gone") {
    ahead.finish_round();
    ahead.job.contributions.pop_back();
    merge_anew(ahead);
    plain.begin_round(10, 1);
    plain.finish_round();
    plain.job.contributions.pop_back();
    CHECK(plain.merge().rejected.empty());
  }
  SECTION("the manifest of one is lost") {
    ahead.finish_round();
    require(ahead.store->erase(contribution_key(0, 2)));
    CHECK(ahead.merge().rejected == std::vector{WorkerId{2}});
    plain.begin_round(10, 1);
    plain.finish_round();
    require(plain.store->erase(contribution_key(0, 2)));
    CHECK(plain.merge().rejected == std::vector{WorkerId{2}});
  }
  SECTION("a stage is entered") {
    require(ahead.engine->enter_stage(0, ""));
    require(plain.engine->enter_stage(0, ""));
  }
  require_same(ahead, plain);
  ahead.train_plainly(40, 4);
  plain.train_plainly(40, 4);
  require_same(ahead, plain);
}

TEST_CASE("a merge ahead of order writes nothing under its workers' keys") {
  AheadFixture ahead(update_of(UpdateKind::kElasticMaster));
  ahead.begin_round(10, 1);
  ahead.engine->expect(ahead.job);
  ahead.put(0, 4);
  ahead.put(1, 4);
  REQUIRE(merge_what_is_there(*ahead.engine) > 0);
  const auto local_keys = [&] { return ahead.map->list("speedo:{m}:" + local_key(0, 1)).value(); };
  CHECK(local_keys().empty());
  ahead.finish_round();
  CHECK(ahead.merge().begun_ahead);
  CHECK_FALSE(local_keys().empty());
}

TEST_CASE("a contribution that is not finite is named when the merge is ordered") {
  const UpdateSpec update = any_update();
  AheadFixture ahead(update), plain(update);
  for (AheadFixture* each : {&ahead, &plain}) {
    each->begin_round(10, 1);
    each->values[1][each->floats - 100] = std::numeric_limits<float>::infinity();
  }
  ahead.engine->expect(ahead.job);
  ahead.put(0, 4);
  ahead.put(1, 4);
  CHECK(merge_what_is_there(*ahead.engine) == 0);
  CHECK_FALSE(ahead.engine->expects());
  for (AheadFixture* each : {&ahead, &plain}) {
    each->finish_round();
    CHECK(each->merge().rejected == std::vector{WorkerId{2}});
  }
  require_same(ahead, plain);
}

TEST_CASE("copies and checkpoints know nothing of a merge ahead of order") {
  const UpdateSpec update = update_of(UpdateKind::kGradientOnly);
  AheadFixture ahead(update);
  ahead.train_plainly(10, 1);
  const Merger::Copy before = ahead.engine->copy();
  ahead.begin_round(20, 2);
  ahead.engine->expect(ahead.job);
  ahead.put(0, 4);
  ahead.put(1, 4);
  REQUIRE(merge_what_is_there(*ahead.engine) > 0);
  const Merger::Copy during = ahead.engine->copy();
  CHECK(during.weights == before.weights);
  CHECK(during.histories == before.histories);
  CHECK(during.version == before.version);
}

TEST_CASE("weights that the store lost are published in the middle of a merge ahead of order") {
  const UpdateSpec update = any_update();
  AheadFixture ahead(update), plain(update);
  ahead.begin_round(10, 1);
  ahead.engine->expect(ahead.job);
  ahead.put(0, 4);
  ahead.put(1, 4);
  REQUIRE(merge_what_is_there(*ahead.engine) > 0);
  require(ahead.store->erase(weights_key()));
  require(ahead.engine->restore_lost_weights());
  ahead.finish_round();
  CHECK(ahead.merge().rejected.empty());
  plain.train_plainly(10, 1);
  require_same(ahead, plain);
}

TEST_CASE("a merger merges ahead of order while it is idle") {
  MergerConfig config = config_of(update_of(UpdateKind::kFullDelta));
  config.ahead_bytes_min = 0;
  MergerFixture early(config, kManyChunks), late(config, kManyChunks);
  for (const std::uint64_t run : {1U, 2U, 3U}) {
    const MergerFixture::Runs runs{{1, run}, {2, run + 10}};
    early.merger->expect(early.job(runs, true));
    for (MergerFixture* each : {&early, &late}) {
      for (const auto& [worker, own] : runs) each->contribute(worker, own, 0.1F);
      CHECK(each->merge_or_fail(runs, true).rejected.empty());
    }
  }
  CHECK(early.stored(3) == late.stored(3));
}

}  // namespace
}  // namespace speedo::test
