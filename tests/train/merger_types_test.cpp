// Mergers with the rule of every solver type: by chunks, in parts, in shared memory and after a
// master's death they make what the rule makes of the whole.

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/core/update_rule.hpp>

#include "train/joined_fixture.hpp"

namespace speedo::test {
namespace {

constexpr UpdateSpec kMasters{.kind = UpdateKind::kGradientOnly};

// The rule of a fixture's solver on whole arrays, on the host.
class WholeRule {
 public:
  explicit WholeRule(const MergerFixture& fixture) : backend_(test::make_backend(1)) {
    auto rule = UpdateRule::create(fixture.solver, fixture.layout, *backend_);
    require(rule);
    rule_ = std::move(*rule);
    for (Arena* arena : {&weights_, &gradients_}) {
      auto made = Arena::create(*backend_, fixture.layout.element_count());
      require(made);
      *arena = std::move(*made);
    }
    backend_->device().upload(weights_.data(), fixture.start);
  }

  void update(std::uint64_t iteration, const std::vector<float>& gradient) {
    backend_->device().upload(gradients_.data(), gradient);
    rule_->update(static_cast<std::int64_t>(iteration), weights_.data(), gradients_.data());
  }
  std::vector<float> weights() const { return copy(weights_); }
  std::vector<std::vector<float>> histories() const {
    std::vector<std::vector<float>> copies;
    for (const Arena* history : rule_->histories()) copies.push_back(copy(*history));
    return copies;
  }

 private:
  std::vector<float> copy(const Arena& arena) const {
    std::vector<float> values(static_cast<std::size_t>(arena.size()));
    backend_->device().download(values, arena.data());
    return values;
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<UpdateRule> rule_;
  Arena weights_, gradients_;
};

void require_same_copy(const Merger::Copy& a, const Merger::Copy& b) {
  REQUIRE((a.weights == b.weights));
  REQUIRE((a.histories == b.histories));
}

// What reaches the rule of so many workers, as separate steps make it.
std::vector<float> mean_of(const std::vector<std::vector<float>>& gradients, float weight,
                           float factor) {
  std::vector<float> sum = gradients[0];
  for (float& value : sum) value *= weight;
  for (std::size_t k = 1; k < gradients.size(); ++k) {
    for (std::size_t i = 0; i < sum.size(); ++i) {
      const float share = weight * gradients[k][i];
      sum[i] += share;
    }
  }
  for (float& value : sum) value *= factor;
  return sum;
}

// A merge of so many workers, all of the fixture's weight, and the rule's step.
void merge_in_both(MergerFixture& fixture, WholeRule& whole, std::uint64_t workers,
                   std::uint64_t run) {
  std::vector<std::vector<float>> gradients;
  MergerFixture::Runs runs;
  for (std::uint64_t worker = 0; worker < workers; ++worker) {
    gradients.push_back(fixture.contribute(worker, run, 0.1F));
    runs.push_back({worker, run});
  }
  REQUIRE(fixture.merge_or_fail(runs, true, run - 1).rejected.empty());
  whole.update(run - 1, mean_of(gradients, fixture.weight, 1.0F / static_cast<float>(workers)));
}

}  // namespace

TEST_CASE("every type's merges of gradients are the rule's updates, bit for bit", "[merger]") {
  const float clip = GENERATE(-1.0F, 0.5F);
  const auto [workers, weight] = GENERATE(
      table<std::uint64_t, float>({{1, 1.0F}, {2, 1.0F}, {2, 0.3F}, {3, 1.0F}, {3, 0.3F}}));
  for (const char* type : kSolverTypes) {
    CAPTURE(type, clip, workers, weight);
    const FixtureSolver solver(type, clip);
    MergerFixture fixture(config_of(kMasters), kManyChunks);
    fixture.weight = weight;
    WholeRule whole(fixture);
    for (std::uint64_t run = 1; run <= 4; ++run) {
      merge_in_both(fixture, whole, workers, run);
      REQUIRE((fixture.stored(run) == whole.weights()));
    }
    REQUIRE((fixture.copy().histories == whole.histories()));
  }
}

TEST_CASE("every type: merges that were taken back leave no trace in those that follow",
          "[merger]") {
  const float clip = GENERATE(-1.0F, 0.5F);
  const std::uint64_t workers = GENERATE(1, 2);
  for (const char* type : kSolverTypes) {
    CAPTURE(type, clip, workers);
    const FixtureSolver solver(type, clip);
    MergerFixture fixture(config_of(kMasters), kManyChunks);
    WholeRule whole(fixture);
    for (std::uint64_t run = 1; run <= 3; ++run) {
      // Its last chunk is at fault: the rule has made steps of those before.
      auto bad = fixture.padded(random_floats(fixture.parameters, 1.0F, run));
      bad[fixture.parameters - 1] = std::numeric_limits<float>::infinity();
      fixture.put_contribution(7, fixture.info(7, run), bad);
      REQUIRE(fixture.merge_or_fail({{7, run}}, true, run - 1).rejected.size() == 1);
      REQUIRE((fixture.copy().histories == whole.histories()));
      REQUIRE((fixture.copy().weights == whole.weights()));
      merge_in_both(fixture, whole, workers, run);
      REQUIRE((fixture.stored(run) == whole.weights()));
    }
    REQUIRE((fixture.copy().histories == whole.histories()));
  }
}

TEST_CASE("every type's parts merge what one merger merges, bit by bit", "[merger]") {
  for (const char* type : kSolverTypes) {
    CAPTURE(type);
    const FixtureSolver solver(type);
    const MergerConfig config = with_term(kMasters);
    Joined joined(config, kJoinedCount, 3);
    MergerFixture plain(config, kJoinedCount);
    std::shared_ptr<Elsewhere> elsewhere;
    for (std::uint64_t run = 1; run <= 5; ++run) {
      // A merger comes and begins with the part's histories, and is killed with all it knows.
      if (run == 2) elsewhere = joined.offer(1, config);
      if (run == 4) elsewhere->die_before_answer(1);
      merge_alike(joined, plain, run);
    }
    REQUIRE(elsewhere->is_gone());
    require_same_copy(joined.fixture->copy(), plain.copy());
  }
}

TEST_CASE("every type's histories are in the checkpoint that the next master begins with",
          "[merger]") {
  for (const char* type : kSolverTypes) {
    CAPTURE(type);
    const FixtureSolver solver(type);
    const MergerConfig config = config_of(kMasters);
    MergerFixture whole(config, 1000);
    const auto store = std::make_shared<ChunkedStore>(std::make_shared<MemoryKeyValue>(), "m");
    auto first = std::make_unique<MergerFixture>(config, 1000, store);
    for (std::uint64_t run = 1; run <= 3; ++run) {
      for (MergerFixture* each : {&whole, first.get()}) {
        each->contribute(0, run, 0.1F);
        each->merge_or_fail({{0, run}}, true, run - 1);
      }
    }
    const ParameterLayout layout = first->layout;
    first.reset();
    const auto found = read_checkpoint(*store, layout, true);
    require(found);
    REQUIRE(found->histories.size() == UpdateRule::history_count(whole.solver).value());
    MergerFixture second(config, 1000, store, &*found);
    for (MergerFixture* each : {&whole, &second}) {
      each->contribute(0, 4, 0.1F);
      each->merge_or_fail({{0, 4}}, true, 3);
    }
    require_same_copy(second.copy(), whole.copy());
  }
}

TEST_CASE("every type: a bad gradient leaves weights and all histories alone", "[merger]") {
  for (const char* type : kSolverTypes) {
    CAPTURE(type);
    const FixtureSolver solver(type);
    MergerFixture fixture(config_of(kMasters), 1000);
    fixture.contribute(0, 1, 0.1F);
    fixture.merge_or_fail({{0, 1}}, true, 0);
    const Merger::Copy before = fixture.copy();
    auto bad = std::vector<float>(1000, 0.1F);
    bad[999] = std::numeric_limits<float>::quiet_NaN();
    fixture.put_contribution(1, fixture.info(1, 2), bad);
    REQUIRE(fixture.merge_or_fail({{1, 2}}, true, 1).rejected.size() == 1);
    require_same_copy(fixture.copy(), before);
  }
}

TEST_CASE("averaged updaters of every type lie behind the weights", "[merger]") {
  for (const char* type : kSolverTypes) {
    CAPTURE(type);
    const FixtureSolver solver(type);
    MergerFixture fixture(config_of({.updater = UpdaterState::kAverage}), 1000);
    const std::size_t histories = UpdateRule::history_count(fixture.solver).value();
    std::vector<float> expected = fixture.stored(0, histories);
    const auto change = random_floats(expected.size(), 0.1F, 1);
    fixture.put_contribution(0, fixture.info(0, 1), change);
    fixture.merge_or_fail({{0, 1}}, true);
    for (std::size_t i = 0; i < change.size(); ++i) expected[i] += change[i];
    REQUIRE((fixture.stored(1, histories) == expected));
    REQUIRE(fixture.copy().histories.size() == histories);
  }
}

TEST_CASE("a checkpoint with the histories of a type that has more is refused", "[merger]") {
  const FixtureSolver solver("Adam");
  MergerFixture adam(config_of(kMasters), 1000);
  const Merger::Copy copy = adam.copy();
  REQUIRE(copy.histories.size() == 2);
  const Checkpoint start{copy.version, copy.weights, copy.histories, copy.state};
  caffe::SolverParameter sgd = adam.solver;
  sgd.set_type("SGD");
  const auto made = make_merger(config_of(kMasters), adam.layout, sgd, start, adam.store, [] {
    return Result<std::unique_ptr<Backend>>(test::make_backend(0));
  });
  REQUIRE_FALSE(made);
  REQUIRE(made.error().code == ErrorCode::kMismatch);
  REQUIRE(made.error().message.find("2 solver histories") != std::string::npos);
}

}  // namespace speedo::test
