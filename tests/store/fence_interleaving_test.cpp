// Masters, readers and lost answers in every order that a seed can make, one operation of the map
// at a time, against a model of what may be seen.

#include <functional>
#include <map>

#include <speedo/base/random.hpp>
#include <speedo/store/layout.hpp>

#include "store/store_under_test.hpp"
#include "support/long_runs.hpp"
#include "support/random_seed.hpp"

namespace speedo::test {
namespace {

// A map that lets others act between any two operations of one actor, and sometimes does an
// operation again, or says that it failed although it was done.
class StepMap : public KeyValue {
 public:
  StepMap(std::shared_ptr<MemoryKeyValue> map, std::function<void()> between,
          std::function<bool()> lose_answer)
      : map_(std::move(map)),
        between_(std::move(between)),
        lose_answer_(std::move(lose_answer)) {}

  void submit(KvPtr operation) override {
    between_();
    if (lose_answer_()) {
      // As Redis' connection does: the first attempt took effect, then others acted, then it is
      // sent again.
      auto first = std::make_shared<KvOperation>();
      copy(*operation, *first);
      map_->submit(first);
      between_();
    }
    map_->submit(std::move(operation));
  }
  Result<std::vector<std::string>> list(std::string_view prefix) override {
    between_();
    auto keys = map_->list(prefix);
    between_();
    return keys;
  }

 private:
  static void copy(const KvOperation& from, KvOperation& to) {
    to.kind = from.kind;
    to.key = from.key;
    to.keys = from.keys;
    to.head = from.head;
    to.body = from.body;
    to.target = from.target;
    to.expiry_seconds = from.expiry_seconds;
    to.master = from.master;
    to.make_head = from.make_head;
  }

  const std::shared_ptr<MemoryKeyValue> map_;
  const std::function<void()> between_;
  const std::function<bool()> lose_answer_;
};

constexpr std::size_t kTwoChunksCount = kChunkElements + 2;

// What took place, over all seeds.
struct Counts {
  int reads = 0, writes_refused = 0, clears = 0, clears_refused = 0, contribution_clears = 0;
};

// Short stand-ins for arrays: only a few floats are looked at.
std::vector<float> values_of(std::uint64_t version) {
  std::vector<float> values(kTwoChunksCount, 0.0F);
  values.front() = values[kChunkElements] = values.back() = static_cast<float>(version);
  return values;
}

class Scene {
 public:
  Scene(std::uint64_t seed, Counts& counts) : random_(seed), counts_(counts) {
    for (std::size_t i = 0; i < kActors; ++i) {
      auto step = std::make_shared<StepMap>(
          map_, [this] { between(); }, [this] { return random_.below(8) == 0; });
      actors_.push_back({std::make_unique<ChunkedStore>(step, "test"), 0, 0});
    }
  }

  void run(int steps) {
    ChunkedStore onlooker(map_, "test");
    for (int i = 0; i < steps; ++i) {
      act();
      check_at_rest(onlooker);
    }
    // Whoever is left with the highest term can write, and is read.
    ChunkedStore last(map_, "test");
    last.fence(++newest_term_);
    write(last, newest_term_);
    std::vector<float> target(kTwoChunksCount);
    const auto info = get(last, weights_key(), kModel, target);
    require(info);
    REQUIRE(info->term == newest_term_);
    REQUIRE(target == values_of(info->version));
  }

 private:
  static constexpr std::size_t kActors = 3;
  enum class Cleared { kAll, kContributions };
  struct Actor {
    std::unique_ptr<ChunkedStore> store;
    std::uint64_t term = 0;
    int depth = 0;  // of its own calls that are under way
  };

  // Whatever was refused or lost: what the manifest names is whole.
  void check_at_rest(ChunkedStore& onlooker) const {
    std::vector<float> target(kTwoChunksCount);
    if (contributed_to_ != 0) {
      require(get(onlooker, contribution_key(contributed_to_, 0), kModel, target));
      REQUIRE(target == values_of(contributed_to_));
    }
    if (!visible_) return;
    const auto info = get(onlooker, weights_key(), kModel, target);
    require(info);
    REQUIRE(target == values_of(info->version));
  }

  void between() {
    if (nested_ < 3 && random_.below(3) == 0) act();
  }

  void act() {
    ++nested_;
    Actor& actor = actors_[random_.below(kActors)];
    if (actor.depth == 0) {
      ++actor.depth;
      const std::uint64_t choice = random_.below(13);
      if (choice == 0) {
        claim(actor);
      } else if (choice == 1 && actor.term != 0) {
        clear(actor, Cleared::kAll);
      } else if (choice == 2 && actor.term != 0) {
        clear(actor, Cleared::kContributions);
      } else if (choice == 3 && newest_term_ != 0) {
        contribute();
      } else if (choice < 9 && actor.term != 0) {
        write(*actor.store, actor.term);
      } else {
        read(*actor.store);
      }
      --actor.depth;
    }
    --nested_;
  }

  void claim(Actor& actor) {
    MasterClaim claim;
    claim.holder = "actor " + std::to_string(&actor - actors_.data());
    claim.force = true;
    claim.time = std::chrono::minutes(1);
    ++claims_under_way_;
    const auto answer = actor.store->claim_master(claim);
    --claims_under_way_;
    require(answer);
    REQUIRE(answer->granted);
    const auto [owner, is_new] = owners_.emplace(answer->term, claim.holder);
    REQUIRE((is_new || owner->second == claim.holder));
    actor.term = answer->term;
    newest_term_ = std::max(newest_term_, answer->term);
    actor.store->fence(actor.term);
  }

  void write(ParameterStore& store, std::uint64_t term) {
    const std::uint64_t version = ++newest_version_;
    RecordInfo info = info_of(version, kTwoChunksCount);
    info.state = "state " + std::to_string(version);
    terms_[version] = term;
    const std::uint64_t newest_before = newest_term_;
    const auto done = put(store, weights_key(), info, values_of(version));
    if (done) {
      // Nobody had a higher term when it began.
      REQUIRE(term >= newest_before);
      // A higher master may have cleared before this one heard that it was done.
      if (term < newest_clear_) return;
      visible_ = true;
      visible_term_ = term;
    } else {
      REQUIRE(code_of(done) == ErrorCode::kSuperseded);
      REQUIRE((newest_term_ > term || claims_under_way_ > 0));
      ++counts_.writes_refused;
    }
  }

  // A worker gives the newest master its share.
  void contribute() {
    ChunkedStore worker(map_, "test");
    contributed_to_ = newest_term_;
    require(put(worker, contribution_key(contributed_to_, 0), info_of(1, kTwoChunksCount),
                values_of(contributed_to_)));
  }

  // What a higher master has written, or was given, stays, whatever this one does and is told.
  void clear(Actor& actor, Cleared what) {
    const std::uint64_t newest_before = newest_term_;
    if (what == Cleared::kAll) {
      ++clears_;
      newest_clear_ = std::max(newest_clear_, actor.term);
      if (visible_term_ <= actor.term) visible_ = false;
    }
    const auto done =
        what == Cleared::kAll ? actor.store->clear() : actor.store->clear_contributions();
    // One that came meanwhile may have been found, too.
    if (contributed_to_ <= actor.term) contributed_to_ = 0;
    if (done) {
      REQUIRE(actor.term >= newest_before);
      ++(what == Cleared::kAll ? counts_.clears : counts_.contribution_clears);
    } else {
      REQUIRE(code_of(done) == ErrorCode::kSuperseded);
      REQUIRE((newest_term_ > actor.term || claims_under_way_ > 0));
      ++counts_.clears_refused;
    }
  }

  void read(ParameterStore& store) {
    const bool was_visible = visible_;
    const int clears_before = clears_;
    auto reader = store.read(weights_key());
    if (!reader) {
      REQUIRE(code_of(reader) == ErrorCode::kNotFound);
      REQUIRE((!was_visible || clears_ != clears_before));
      return;
    }
    const RecordInfo info = (*reader)->info();
    REQUIRE(terms_.at(info.version) == info.term);
    REQUIRE(info.state == "state " + std::to_string(info.version));
    // What a reader finds never comes from an older master than what one found before.
    if (nested_ == 1) {
      REQUIRE(info.term >= newest_seen_);
      newest_seen_ = info.term;
    }
    std::vector<float> target(kTwoChunksCount);
    const std::span<float> all(target);
    (*reader)->request(0, all.first(kChunkElements));
    (*reader)->request(1, all.subspan(kChunkElements));
    for (const std::size_t chunk : {0, 1}) {
      const auto there = (*reader)->wait(chunk);
      if (!there) {
        REQUIRE(code_of(there) == ErrorCode::kNotFound);
        return;
      }
    }
    REQUIRE(target == values_of(info.version));
    ++counts_.reads;
  }

  Random random_;
  Counts& counts_;
  std::shared_ptr<MemoryKeyValue> map_ = std::make_shared<MemoryKeyValue>();
  std::vector<Actor> actors_;
  std::map<std::uint64_t, std::string> owners_;    // by term
  std::map<std::uint64_t, std::uint64_t> terms_;  // by version
  std::uint64_t newest_term_ = 0, newest_version_ = 0, newest_seen_ = 0, newest_clear_ = 0;
  int nested_ = 0, claims_under_way_ = 0, clears_ = 0;
  bool visible_ = false;  // a record of visible_term_ or a higher one must be read
  std::uint64_t visible_term_ = 0;
  std::uint64_t contributed_to_ = 0;  // the master whose contribution must be read; 0: none
};

}  // namespace

TEST_CASE("no interleaving of masters damages what readers see", "[store][fence]") {
  Counts counts;
  const std::uint64_t seeds = is_long() ? 200 : 25;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    Scene(seed, counts).run(40);
  }
  for (std::uint64_t i = 0; i < seeds; ++i) {
    const std::uint64_t seed = fresh_seed() + i;
    CAPTURE(seed);
    Scene(seed, counts).run(40);
  }
  REQUIRE(counts.reads > 0);
  REQUIRE(counts.writes_refused > 0);
  REQUIRE(counts.clears > 0);
  REQUIRE(counts.clears_refused > 0);
  REQUIRE(counts.contribution_clears > 0);
}

}  // namespace speedo::test
