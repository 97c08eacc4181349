// Weights are used while the rest of them is still on its way, and a contribution goes out while
// its run still computes: bucket by bucket, whatever the kind of update.
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

#include <speedo/backend/backend.hpp>
#include <speedo/store/layout.hpp>
#include <speedo/store/record_store.hpp>

#include "store/chunk_range.hpp"
#include "store/chunked_store.hpp"
#include "store/memory_key_value.hpp"
#include "train/trainer/learner.hpp"

#include "trainer_cluster.hpp"

namespace speedo {
namespace {

using test::await;

constexpr std::int64_t kChunk = kChunkElements;
constexpr std::int64_t kElements = 3 * kChunk;
constexpr Bucket kWhole{0, kElements};

// A map that knows which chunks of contributions it has, and keeps the answer to one request back.
class WatchedMap : public MemoryKeyValue {
 public:
  void submit(KvPtr operation) override {
    const std::lock_guard lock(mutex_);
    const std::string chunk = operation->key.substr(operation->key.rfind(':') + 1);
    if (operation->kind == KvOperation::Kind::kSet &&
        operation->key.find(":worker/") != std::string::npos) {
      contributed_.insert(chunk);
    }
    if (operation->kind == KvOperation::Kind::kGetExact && chunk == held_chunk_) {
      held_ = std::move(operation);
    } else {
      MemoryKeyValue::submit(std::move(operation));
    }
  }
  void hold(const std::string& chunk) {
    const std::lock_guard lock(mutex_);
    held_chunk_ = chunk;
  }
  // Answers what was held.
  bool release() {
    const std::lock_guard lock(mutex_);
    held_chunk_.clear();
    if (!held_) return false;
    MemoryKeyValue::submit(std::exchange(held_, nullptr));
    return true;
  }
  std::set<std::string> contributed() {
    const std::lock_guard lock(mutex_);
    return contributed_;
  }

 private:
  std::mutex mutex_;
  std::string held_chunk_;
  KvPtr held_;
  std::set<std::string> contributed_;
};

// What the learner saw at each of its buckets, and what happens before each but the first.
struct Seen {
  std::function<void()> between = [] {};
  bool forward_began_early = false;           // before the last chunk of the weights was there
  std::vector<std::set<std::string>> stored;  // after each bucket that was ready
  // Whether a bucket is the host's as soon as it is final; else it is copied while the next ones
  // are computed.
  bool is_direct = true;

  bool has_first_early() const { return stored[is_direct ? 0 : 1].contains("c2"); }
};

// Three layers of a chunk each; the gradient is 1 everywhere, or not finite in one place.
class ChunkLearner : public Learner {
 public:
  ChunkLearner(std::shared_ptr<WatchedMap> map, Seen& seen, std::int64_t bad_place)
      : map_(std::move(map)), seen_(seen), bad_place_(bad_place), backend_(test::make_backend(1)) {
    ParameterSlot slot;
    slot.layer = "all";
    slot.shape = Shape({kElements});
    layout_.add(slot);
    weights_ = test::value_of(Arena::create(*backend_, kElements));
    gradients_ = test::value_of(Arena::create(*backend_, kElements));
    seen_.is_direct = backend_->device().memory() == MemoryKind::kHost;
  }
  const ParameterLayout& layout() const override { return layout_; }
  Backend& backend() override { return *backend_; }
  Arena& weights() override { return weights_; }
  Arena& gradients() override { return gradients_; }
  void set_batch_span(const BatchSpan& /*span*/) override {}
  std::uint64_t batch_size() const override { return 1; }
  std::chrono::nanoseconds data_waited() const override { return {}; }
  std::chrono::nanoseconds gone_forward() const override { return {}; }
  void keep_statistics() override {}
  void put_statistics_change_into_gradients() override {}

  Result<float> accumulate_gradients(int /*passes*/, const Hooks& hooks) override {
    if (hooks.weights_needed) {
      SPEEDO_TRY(hooks.weights_needed({0, kChunk}));
      seen_.forward_began_early = map_->release();
      SPEEDO_TRY(hooks.weights_needed(kWhole));
    }
    backend_->fill(kElements, 1.0F, gradients_.data());
    if (bad_place_ >= 0) {
      backend_->fill(1, std::numeric_limits<float>::infinity(), gradients_.data() + bad_place_);
    }
    if (hooks.last_backward) hooks.last_backward();
    for (std::int64_t layer = 2; hooks.gradient_ready && layer >= 0; --layer) {
      if (layer < 2) seen_.between();
      backend_->device().synchronize();
      hooks.gradient_ready({layer * kChunk, kChunk}, StreamEvent());
      seen_.stored.push_back(map_->contributed());
    }
    return 0.5F;
  }

 private:
  const std::shared_ptr<WatchedMap> map_;
  Seen& seen_;
  const std::int64_t bad_place_;
  const std::unique_ptr<Backend> backend_;
  ParameterLayout layout_;
  Arena weights_, gradients_;
};

// One run of one worker. The weights' last chunk comes late, but not to an elastic worker, which
// reads them all before its first run. `newer_at_last`: before the last bucket the weights that it
// has begun to read are overwritten.
struct OneRun {
  explicit OneRun(const UpdateSpec& update, const std::string& solver = "",
                  std::int64_t bad_place = -1, bool newer_at_last = false) {
    TrainerParts parts = test::trainer_parts();
    parts.make_learner = [=, this](const LearnerOptions&) -> Result<std::unique_ptr<Learner>> {
      return std::unique_ptr<Learner>(std::make_unique<ChunkLearner>(map, seen, bad_place));
    };
    JobSpec job;
    job.solver_text = "base_lr: 0.5 lr_policy: 'fixed' random_seed: 1 " + solver;
    job.stages = {update};
    ParameterLayout layout;
    ParameterSlot slot;
    slot.layer = "all";
    slot.shape = Shape({kElements});
    layout.add(slot);
    model = layout.digest();
    std::vector<float> record(kElements, 2.0F);
    if (averages_histories(update)) record.resize(2 * record.size());
    publish(1, record);
    trainer = make_trainer(std::move(parts));
    REQUIRE(await<Result<Digest>>([&](auto done) {
      trainer->prepare({WorkerId{0}, contribution_key(0, 0), job, store}, done);
    }));
    if (!is_elastic(update.kind)) map->hold("c2");
    if (newer_at_last) {
      seen.between = [this, bucket = 0]() mutable {
        if (++bucket < 2) return;
        for (std::uint64_t version = 2; version < 2 + kRecordSlots; ++version) {
          publish(version, std::vector<float>(kElements, 4.0F));
        }
      };
    }
    report = test::value_of(await<Result<RunReport>>([&](auto done) {
      TrainMessage order;
      order.run = 7;
      order.version = 1;
      trainer->run(order, done);
    }));
  }
  void publish(std::uint64_t version, const std::vector<float>& weights) const {
    RecordInfo info;
    info.model = model;
    info.version = version;
    REQUIRE(put(*store, weights_key(), info, weights));
  }
  // What was contributed; empty: nothing.
  std::vector<float> contribution() const {
    const auto reader = store->read(contribution_key(0, 0));
    if (!reader) return {};
    std::vector<float> values((*reader)->info().element_count);
    REQUIRE(get(*store, contribution_key(0, 0), (*reader)->info().model, values));
    return values;
  }

  std::shared_ptr<WatchedMap> map = std::make_shared<WatchedMap>();
  std::shared_ptr<RecordStore> store = std::make_shared<ChunkedStore>(map, "job");
  Digest model;
  Seen seen;
  std::unique_ptr<Trainer> trainer;
  RunReport report;
};

}  // namespace

TEST_CASE("a pass begins with the first weights, and each bucket goes out when it is final") {
  for (const UpdateSpec& update :
       {UpdateSpec{}, UpdateSpec{.kind = UpdateKind::kGradientOnly},
        UpdateSpec{.updater = UpdaterState::kAverage}}) {
    OneRun run(update);
    CHECK(run.seen.forward_began_early);
    REQUIRE(run.seen.stored.size() == 3);
    CHECK(run.seen.has_first_early());
    CHECK_FALSE(run.seen.stored[0].contains("c1"));
    CHECK_FALSE(run.seen.stored[1].contains("c0"));
    CHECK_FALSE(run.seen.stored[2].contains("m"));  // visible only with the commit
    const float expected = update.kind == UpdateKind::kGradientOnly ? 1.0F : -0.5F;
    const std::vector<float> contribution = run.contribution();
    REQUIRE(contribution.size() >= static_cast<std::size_t>(kElements));
    CHECK(contribution.front() == expected);
    CHECK(contribution[kElements - 1] == expected);
  }
}

TEST_CASE("an elastic worker reads the centre, and contributes, where gradients are used up") {
  UpdateSpec update;
  update.kind = UpdateKind::kElastic;
  update.moving_rate = 0.5F;
  const bool overwritten = GENERATE(false, true);
  OneRun run(update, "", -1, overwritten);
  REQUIRE(run.seen.stored.size() == 3);
  CHECK(run.seen.has_first_early());
  CHECK_FALSE(run.seen.stored[0].contains("c1"));
  CHECK_FALSE(run.seen.stored[1].contains("c0"));
  CHECK_FALSE(run.seen.stored[2].contains("m"));
  CHECK(run.report.base.value == (overwritten ? 1 + kRecordSlots : 1));
  // Of x = 2 - 0.5, with the centre at 2 or, of all chunks the same, at 4.
  const std::vector<float> expected(kElements, overwritten ? -1.25F : -0.25F);
  CHECK(run.contribution() == expected);
}

TEST_CASE("clipping by norm holds every bucket back until the whole gradient is known") {
  OneRun run({}, "clip_gradients: 1.0");
  CHECK(run.seen.forward_began_early);
  CHECK(run.seen.stored.empty());
  CHECK(run.contribution().size() == static_cast<std::size_t>(kElements));
}

TEST_CASE("a gradient that is not finite is not contributed, though some of it has gone out") {
  OneRun run({}, "momentum: 0.9", kChunk / 2);
  CHECK(run.seen.stored.back().contains("c2"));
  CHECK(std::isnan(run.report.loss));
  CHECK(run.contribution().empty());
}

}  // namespace speedo
