// The merger with workers in shared memory beside workers of the store: the same bits, and in the
// store what has to be there.

#include <chrono>
#include <map>
#include <thread>

#include <speedo/store/memory_store.hpp>

#include "store/shared/memory_exchange.hpp"
#include "train/failing_store.hpp"
#include "train/merger_fixture.hpp"
#include "train/merge/merger_looks.hpp"

namespace speedo::test {
namespace {

constexpr std::chrono::seconds kLongEnough{20};

template <class Condition>
bool comes_true(const Condition& holds) {
  const auto deadline = std::chrono::steady_clock::now() + kLongEnough;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// A fixture whose merger shares memory, and workers that have a place in it.
struct SharedFixture {
  SharedFixture(MergerConfig config, std::size_t count, std::shared_ptr<RecordStore> the_base)
      : base(std::move(the_base)),
        shared(std::make_shared<SharedStore>(base)),
        fixture(with(std::move(config)), count, shared) {}

  MergerConfig with(MergerConfig config) const {
    config.shared = shared;
    return config;
  }

  // In memory, from now on.
  void join(std::uint64_t worker, std::uint64_t histories = 0) {
    const std::uint64_t count = fixture.elements * (1 + histories);
    auto values = SharedMemory::create(count * sizeof(float));
    require(values);
    const std::string key = contribution_key(0, worker);
    auto& place = workers[worker];
    place.values = *values;
    place.memory =
        std::make_unique<WorkerMemory>(base, meet_directly(shared, 0), key);
    place.memory->share({.slots = 1, .element_count = count, .model = fixture.layout.digest()},
                        *values);
    REQUIRE(shared->reads_in_place(key));
  }

  // Forms the values where the worker forms them, and contributes that.
  void contribute(std::uint64_t worker, std::uint64_t run, const std::vector<float>& values) {
    RecordStore* store = base.get();
    std::vector<float> elsewhere = values;
    std::span<float> place = elsewhere;
    if (const auto found = workers.find(worker); found != workers.end()) {
      store = found->second.memory->store().get();
      found->second.memory->begin_run(run);
      place = {reinterpret_cast<float*>(found->second.values->data()), values.size()};
      std::ranges::copy(values, place.begin());
    }
    require(put(*store, contribution_key(0, worker), fixture.info(worker, run), place));
  }

  // What a worker in memory reads.
  std::vector<float> seen(std::uint64_t worker, std::uint64_t version, std::size_t count) {
    std::vector<float> values(count);
    const auto info = get(*workers.at(worker).memory->store(), weights_key(),
                          fixture.layout.digest(), values);
    require(info);
    REQUIRE(info->version == version);
    return values;
  }

  std::uint64_t stored_version() {
    const auto reader = shared->base().read(weights_key());
    return reader ? (*reader)->info().version : 0;
  }

  struct Worker {
    std::shared_ptr<SharedMemory> values;
    std::unique_ptr<WorkerMemory> memory;
  };
  std::shared_ptr<RecordStore> base;
  std::shared_ptr<SharedStore> shared;
  MergerFixture fixture;
  std::map<std::uint64_t, Worker> workers;
};

std::shared_ptr<RecordStore> memory_store() { return make_memory_store("m"); }

}  // namespace

TEST_CASE("merges in shared memory have the bits of merges through the store",
          "[merger][shared]") {
  const UpdateSpec spec = GENERATE(
      UpdateSpec{}, UpdateSpec{.kind = UpdateKind::kGradientOnly},
      UpdateSpec{.kind = UpdateKind::kElastic, .moving_rate = 0.5F},
      UpdateSpec{.kind = UpdateKind::kElasticMaster, .moving_rate = 0.5F},
      UpdateSpec{.steps_per_run = 2, .updater = UpdaterState::kAverage});
  const bool mean = GENERATE(true, false);
  const bool expects = GENERATE(false, true);
  const std::size_t histories = averages_histories(spec) ? 1 : 0;
  CAPTURE(spec.kind, mean, expects, histories);
  MergerConfig config = config_of(spec);
  config.ahead_bytes_min = 0;
  MergerFixture plain(config, kManyChunks);
  SharedFixture shared(config, kManyChunks, memory_store());
  shared.join(0, histories);
  shared.join(2, histories);
  for (std::uint64_t run = 1; run <= 5; ++run) {
    if (expects) {
      for (MergerFixture* each : {&plain, &shared.fixture}) {
        each->merger->expect(each->job({{0, run}, {1, run}, {2, run}}, mean, run));
      }
    }
    for (std::uint64_t worker = 0; worker < 3; ++worker) {
      std::vector<float> values(plain.elements * (1 + histories));
      const auto random = random_floats(plain.parameters, 0.01F, 1000 * worker + run);
      std::ranges::copy(random, values.begin());
      if (histories > 0) {
        std::ranges::copy(random, values.begin() + static_cast<std::ptrdiff_t>(plain.elements));
      }
      plain.put_contribution(worker, plain.info(worker, run), values);
      shared.contribute(worker, run, values);
    }
    plain.merge_or_fail({{0, run}, {1, run}, {2, run}}, mean, run);
    const auto result = shared.fixture.merge_or_fail({{0, run}, {1, run}, {2, run}}, mean, run);
    REQUIRE(result.rejected.empty());
    const auto expected = plain.stored(run, histories);
    REQUIRE((shared.seen(2, result.version.value, expected.size()) == expected));
    // Worker 1 reads from the store, so it is there as well, and first.
    REQUIRE(shared.stored_version() == result.version.value);
    REQUIRE((shared.fixture.copy().histories == plain.copy().histories));
  }
}

TEST_CASE("with all workers in memory the store follows behind, and has all in the end",
          "[merger][shared]") {
  const auto base = memory_store();
  std::vector<float> last;
  Version version;
  {
    SharedFixture shared({}, kManyChunks, base);
    shared.join(0);
    const std::uint64_t first = shared.stored_version();
    REQUIRE(first == shared.fixture.first.value);
    std::uint64_t run = 0;
    const auto train = [&] {
      run += 1;
      shared.fixture.state = "state " + std::to_string(run);
      shared.contribute(0, run, shared.fixture.padded(
                                    random_floats(shared.fixture.parameters, 0.01F, run)));
      version = shared.fixture.merge_or_fail({{0, run}}, false).version;
    };
    while (run < 20) train();
    // A worker that came now would find them there, though nobody has asked.
    REQUIRE(comes_true([&] { return shared.stored_version() == version.value; }));
    const auto reader = base->read(weights_key());
    REQUIRE((*reader)->info().state == shared.fixture.state);
    train();
    last = shared.fixture.copy().weights;
  }
  std::vector<float> stored(last.size());
  const auto info = get(*base, weights_key(), (*base->read(weights_key()))->info().model, stored);
  require(info);
  REQUIRE(info->version == version.value);
  REQUIRE(info->state == "state 21");
  REQUIRE((stored == last));
}

TEST_CASE("a merge ahead does not keep weights from a worker that comes through the store",
          "[merger][shared]") {
  SharedFixture shared({}, kManyChunks, memory_store());
  shared.join(0);
  const auto contribute = [&](std::uint64_t worker, std::uint64_t run) {
    shared.contribute(worker, run,
                      shared.fixture.padded(
                          random_floats(shared.fixture.parameters, 0.01F, 100 * worker + run)));
  };
  std::uint64_t run = 0;
  Version version;
  // Until the store is behind, which it is unless this thread was held up.
  do {
    contribute(0, ++run);
    version = shared.fixture.merge_or_fail({{0, run}}, false).version;
  } while (run < 20 || shared.stored_version() == version.value);
  // Worker 1 begins with what is in the store then.
  const MergerFixture::Runs runs = {{0, run + 1}, {1, run + 1}};
  shared.fixture.merger->expect(shared.fixture.job(runs, true));
  contribute(0, run + 1);
  REQUIRE(comes_true([&] { return shared.stored_version() == version.value; }));
  contribute(1, run + 1);
  REQUIRE(shared.fixture.merge_or_fail(runs, true).rejected.empty());
}

TEST_CASE("a contribution that is formed anew before it is merged is rejected",
          "[merger][shared]") {
  SharedFixture shared({}, kManyChunks, memory_store());
  shared.join(0);
  shared.join(1);
  for (std::uint64_t worker : {0, 1}) {
    shared.contribute(worker, 1, std::vector<float>(shared.fixture.elements, 0.25F));
  }
  shared.workers.at(0).memory->begin_run(2);
  const auto result = shared.fixture.merge_or_fail({{0, 1}, {1, 1}}, false);
  REQUIRE(result.rejected == std::vector{WorkerId{0}});
  REQUIRE(result.version == shared.fixture.after(1));
  std::vector<float> expected = shared.fixture.start;
  for (float& value : expected) value += 0.25F;
  REQUIRE((shared.fixture.copy().weights == expected));
}

TEST_CASE("a worker that has gone is merged if it had finished, and forgotten when it is erased",
          "[merger][shared]") {
  SharedFixture shared({}, kManyChunks, memory_store());
  shared.join(0);
  shared.contribute(0, 1, std::vector<float>(shared.fixture.elements, 0.25F));
  const std::string key = contribution_key(0, 0);
  SECTION("and trains for somebody else") {
    shared.workers.at(0).memory->withdraw();
    REQUIRE(shared.fixture.merge_or_fail({{0, 1}}, false).rejected == std::vector{WorkerId{0}});
  }
  SECTION("with its process") {
    shared.workers.clear();
    REQUIRE(shared.fixture.merge_or_fail({{0, 1}}, false).rejected.empty());
    require(shared.shared->erase(key, 0));
    REQUIRE_FALSE(shared.shared->reads_in_place(key));
    REQUIRE(shared.fixture.merge_or_fail({{0, 1}}, false).rejected == std::vector{WorkerId{0}});
  }
}

TEST_CASE("a store that fails does not hold up merges in memory", "[merger][shared]") {
  const auto base = std::make_shared<FailingStore>(memory_store());
  SharedFixture shared({}, kManyChunks, base);
  shared.join(0);
  const std::uint64_t first = shared.stored_version();
  base->refuse_writes(true);
  for (std::uint64_t run = 1; run <= 10; ++run) {
    shared.contribute(0, run, std::vector<float>(shared.fixture.elements, 0.25F));
    REQUIRE(shared.fixture.merge_or_fail({{0, run}}, false).version == shared.fixture.after(run));
  }
  REQUIRE(comes_true([&] { return base->has_failed(); }));
  base->refuse_writes(false);
  REQUIRE(shared.stored_version() == first);
  REQUIRE(comes_true([&] { return shared.stored_version() == shared.fixture.after(10).value; }));
}

TEST_CASE("a store that does not answer does not hold up merges in memory", "[merger][shared]") {
  const UpdateSpec spec = GENERATE(UpdateSpec{}, UpdateSpec{.kind = UpdateKind::kGradientOnly});
  const bool idles = GENERATE(false, true);
  const auto base = std::make_shared<FailingStore>(memory_store());
  SharedFixture shared(config_of(spec), kManyChunks, base);
  shared.join(0);
  std::uint64_t run = 0;
  const auto merge = [&] {
    run += 1;
    shared.contribute(0, run, std::vector<float>(shared.fixture.elements, 0.25F));
    REQUIRE(shared.fixture.merge_or_fail({{0, run}}, false).version == shared.fixture.after(run));
  };
  base->hang(true);
  REQUIRE(comes_true([&] {
    merge();
    return base->is_waited_for();
  }));
  if (idles) std::this_thread::sleep_for(kMergerLookInterval + std::chrono::milliseconds(100));
  for (int i = 0; i < 10; ++i) merge();
  CHECK(base->is_waited_for());
  base->hang(false);
  REQUIRE(comes_true([&] { return shared.stored_version() == shared.fixture.after(run).value; }));
}

TEST_CASE("weights in memory that the store has lost are published again", "[merger][shared]") {
  const auto base = make_memory_store("m");
  SharedFixture shared({}, kManyChunks, base);
  shared.join(0);
  shared.contribute(0, 1, std::vector<float>(shared.fixture.elements, 0.25F));
  REQUIRE(shared.fixture.merge_or_fail({{0, 1}}, false).version == shared.fixture.after(1));
  const std::uint64_t newest = shared.fixture.after(1).value;
  REQUIRE(comes_true([&] { return shared.stored_version() == newest; }));
  require(base->erase(weights_key()));
  REQUIRE(shared.stored_version() == 0);
  REQUIRE(comes_true([&] { return shared.stored_version() == newest; }));
}

}  // namespace speedo::test
