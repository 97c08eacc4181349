// Weights in parts under faults drawn from seeds: mergers that die at any answer, are replaced,
// servers that lose all they hold at any operation, contributions that are not finite. What is
// stored in the end is what one merger makes of the contributions that were merged.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include <speedo/base/random.hpp>

#include "support/long_runs.hpp"
#include "support/random_seed.hpp"
#include "train/joined_fixture.hpp"

namespace speedo::test {
namespace {

// How often faults struck, over all seeds.
struct Strikes {
  std::atomic<int> forgotten{0};
  int deaths = 0, replaced = 0, rejected = 0;

  bool all() const { return forgotten > 0 && deaths > 0 && replaced > 0 && rejected > 0; }
};

// When a server loses what it holds: at its operation of this number from now.
struct Forgetting {
  std::atomic<int> operations_left{-1};
};

class ForgetfulMap : public KeyValue {
 public:
  ForgetfulMap(std::shared_ptr<MemoryKeyValue> map, std::shared_ptr<Forgetting> when,
               Strikes& strikes)
      : map_(std::move(map)), when_(std::move(when)), strikes_(strikes) {}
  void submit(KvPtr operation) override {
    if (when_->operations_left-- == 0) {
      map_->set_image({});
      strikes_.forgotten += 1;
    }
    map_->submit(std::move(operation));
  }
  Result<std::vector<std::string>> list(std::string_view prefix) override {
    return map_->list(prefix);
  }

 private:
  const std::shared_ptr<MemoryKeyValue> map_;
  const std::shared_ptr<Forgetting> when_;
  Strikes& strikes_;
};

constexpr std::uint64_t kRandomWorkers = 2, kRandomMerges = 8;

// One job. With one part, which has no copy, mergers die or its server forgets: where both did, it
// would be gone for good.
class RandomParts {
 public:
  RandomParts(std::uint64_t seed, Strikes& strikes)
      : random_(Random::derive(seed, {31})),
        strikes_(strikes),
        parts_(1 + random_.below(3)),
        servers_forget_(random_.below(2) == 0),
        config_(with_term({.kind = random_.below(2) == 0 ? UpdateKind::kFullDelta
                                                         : UpdateKind::kGradientOnly})),
        joined_(config_, count(), parts_, nullptr,
                [this](std::shared_ptr<MemoryKeyValue> map) { return forgetful(std::move(map)); }),
        plain_(config_, count()) {
    mergers_.resize(parts_);
    for (std::size_t part = 0; part < parts_; ++part) {
      if (random_.below(3) != 0) mergers_[part] = joined_.offer(part, config_);
    }
  }

  void run() {
    for (std::uint64_t run = 1; run <= kRandomMerges; ++run) {
      const std::vector<bool> bad = contribute(run);
      if (servers_forget_) arm();
      if (!servers_forget_ || parts_ > 1) disturb_mergers();
      merge(run, bad);
    }
    for (auto& [map, when] : forgettings_) when->operations_left = -1;
    require_same_weights();
  }

 private:
  std::size_t count() const { return parts_ * kChunkElements + 1000; }

  std::shared_ptr<KeyValue> forgetful(std::shared_ptr<MemoryKeyValue> map) {
    auto& when = forgettings_[map.get()];
    if (!when) when = std::make_shared<Forgetting>();
    return std::make_shared<ForgetfulMap>(std::move(map), when, strikes_);
  }

  std::vector<bool> contribute(std::uint64_t run) {
    std::vector<bool> bad;
    for (std::uint64_t worker = 0; worker < kRandomWorkers; ++worker) {
      MergerFixture& fixture = *joined_.fixture;
      auto values = fixture.padded(random_floats(count(), 0.01F, 100 * worker + run));
      require(put(*plain_.store, contribution_key(7, worker), plain_.info(worker, run), values));
      bad.push_back(random_.below(8) == 0);
      if (bad.back()) values[random_.below(count())] = NAN;
      require(put(*joined_.store, contribution_key(7, worker), fixture.info(worker, run), values));
    }
    return bad;
  }

  // One server after the other: a merge in between has put back the copies that lay there.
  void arm() {
    if (merges_ < armed_at_ + 2 || random_.below(2) != 0) return;
    armed_at_ = merges_;
    for (auto& [map, when] : forgettings_) when->operations_left = -1;
    auto each = forgettings_.begin();
    std::advance(each, random_.below(forgettings_.size()));
    each->second->operations_left = static_cast<int>(random_.below(20));
  }

  void disturb_mergers() {
    const std::size_t part = random_.below(parts_);
    if (mergers_[part] && mergers_[part]->is_gone()) {
      mergers_[part] = nullptr;
      strikes_.deaths += 1;
    }
    if (mergers_[part] && random_.below(2) == 0) {
      const int answer = 1 + static_cast<int>(random_.below(has_histories() ? 1 : 2));
      if (is_kept(part)) mergers_[part]->die_before_answer(answer);
    } else if (random_.below(2) == 0 && (!mergers_[part] || is_kept(part))) {
      strikes_.replaced += mergers_[part] ? 1 : 0;
      mergers_[part] = joined_.offer(part, config_);
    }
  }

  bool has_histories() const { return config_.stages.front().kind != UpdateKind::kFullDelta; }

  // The histories of a merger that goes are those of its last checkpoint, which comes after the
  // weights that its answer is about: whether that is there, and on the next server, within a
  // while.
  bool is_kept(std::size_t part) {
    if (!has_histories() || merges_ == 0) return true;
    const auto has_it = [&](const std::string& key) {
      const auto reader = joined_.store->read(key);
      return reader && (*reader)->info().version == joined_.fixture->after(merges_).value;
    };
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (!has_it(part_key(part, checkpoint_key())) ||
           (parts_ > 1 && !has_it(part_copy_key(part, parts_, checkpoint_key())))) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  void merge(std::uint64_t run, const std::vector<bool>& bad) {
    MergerFixture::Runs runs, merged;
    for (std::uint64_t worker = 0; worker < kRandomWorkers; ++worker) runs.push_back({worker, run});
    const MergeResult result = joined_.fixture->merge_or_fail(runs, true, run);
    for (const auto& each : runs) {
      const bool is_out = std::ranges::find(result.rejected, WorkerId{each.first}) !=
                          result.rejected.end();
      // A server that forgets may take a contribution with it.
      if (bad[each.first] || !servers_forget_) REQUIRE(is_out == bad[each.first]);
      if (!is_out) merged.push_back(each);
    }
    strikes_.rejected += static_cast<int>(result.rejected.size());
    if (!merged.empty()) {
      plain_.merge_or_fail(merged, true, run);
      merges_ += 1;
    }
    REQUIRE(result.version == joined_.fixture->after(merges_));
  }

  // What a server has lost is back within a look or two of its merger.
  void require_same_weights() {
    MergerFixture& fixture = *joined_.fixture;
    std::vector<float> found(fixture.elements);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (true) {
      const auto read = get(*joined_.store, weights_key(), fixture.layout.digest(), found);
      if (read && read->version == fixture.after(merges_).value) break;
      REQUIRE(std::chrono::steady_clock::now() < deadline);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    REQUIRE((found == plain_.stored(merges_)));
    const Merger::Copy a = fixture.copy(), b = plain_.copy();
    REQUIRE((a.weights == b.weights));
    REQUIRE((a.histories == b.histories));
  }

  Random random_;
  Strikes& strikes_;
  const std::size_t parts_;
  const bool servers_forget_;
  const MergerConfig config_;
  std::map<const MemoryKeyValue*, std::shared_ptr<Forgetting>> forgettings_;
  Joined joined_;
  MergerFixture plain_;
  std::vector<std::shared_ptr<Elsewhere>> mergers_;
  std::uint64_t merges_ = 0, armed_at_ = 0;
};

}  // namespace

TEST_CASE("parts with faults from seeds end with what was merged, bit by bit", "[merger]") {
  Strikes strikes;
  // Of few seeds none may draw one of the faults: one in some hundred times.
  const std::uint64_t seeds = is_long() ? 1000 : 10, seeds_max = 10 * seeds;
  for (std::uint64_t i = 0; i < seeds || (!strikes.all() && i < seeds_max); ++i) {
    const std::uint64_t seed = varied(i);
    CAPTURE(seed);
    RandomParts(seed, strikes).run();
  }
  CHECK(strikes.forgotten > 0);
  CHECK(strikes.deaths > 0);
  CHECK(strikes.replaced > 0);
  CHECK(strikes.rejected > 0);
}

}  // namespace speedo::test
