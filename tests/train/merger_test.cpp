// The merger on a store in memory: what it makes of contributions, and what it leaves alone.

#include <speedo/train/merger.hpp>

#include <cmath>
#include <future>
#include <limits>

#include "support/poll.hpp"
#include "train/merger_fixture.hpp"

namespace speedo::test {

TEST_CASE("one full delta is added bit by bit", "[merger]") {
  const int threads = GENERATE(1, 2, 3);
  MergerFixture fixture({.threads = threads}, kManyChunks);
  const auto delta = fixture.contribute(4, 17, 0.01F);
  const MergeResult result = fixture.merge_or_fail({{4, 17}}, false);
  REQUIRE(result.version == fixture.after(1));
  REQUIRE(result.rejected.empty());
  std::vector<float> expected = fixture.start;
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += delta[i];
  REQUIRE((fixture.copy().weights == expected));
  REQUIRE((fixture.stored(1) == expected));
}

TEST_CASE("the mean of several deltas, in the order given", "[merger]") {
  const int threads = GENERATE(1, 3);
  const std::size_t count = GENERATE(std::size_t{100}, kManyChunks);
  MergerFixture fixture({.threads = threads}, count);
  std::vector<std::vector<float>> deltas;
  for (std::uint64_t w = 0; w < 3; ++w) deltas.push_back(fixture.contribute(w, 5 + w, 0.01F));
  REQUIRE(fixture.merge_or_fail({{2, 7}, {0, 5}, {1, 6}}, true).version == fixture.after(1));
  std::vector<float> expected = fixture.start;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const float sum = deltas[2][i] + deltas[0][i] + deltas[1][i];
    expected[i] += (1.0F / 3.0F) * sum;
  }
  REQUIRE((fixture.stored(1) == expected));
}

TEST_CASE("factor, weight and skip", "[merger]") {
  MergerFixture fixture(config_of({.factor = 2.0F, .skip = 0.005F}), 1000);
  const auto delta = fixture.contribute(0, 1, 0.01F), other = fixture.contribute(1, 1, 0.01F);
  fixture.weight = 0.5F;
  fixture.merge_or_fail({{0, 1}, {1, 1}}, false);
  const auto merged = fixture.stored(1);
  int skipped = 0;
  for (std::size_t i = 0; i < merged.size(); ++i) {
    double expected = fixture.start[i];
    for (const float d : {delta[i], other[i]}) {
      if (std::fabs(d) >= 0.005F)
        expected += 0.25 * double{d};
      else
        ++skipped;
    }
    REQUIRE(std::fabs(merged[i] - expected) < 1e-6);
  }
  REQUIRE(skipped > 100);
}

TEST_CASE("skip compares the mean's elements, not the sum's", "[merger]") {
  MergerFixture fixture(config_of({.skip = 0.005F}), 1000);
  const auto a = fixture.contribute(0, 1, 0.01F), b = fixture.contribute(1, 1, 0.01F);
  fixture.merge_or_fail({{0, 1}, {1, 1}}, true);
  const auto merged = fixture.stored(1);
  int skipped = 0;
  for (std::size_t i = 0; i < merged.size(); ++i) {
    const float sum = a[i] + b[i];
    const bool is_small = std::fabs(sum) < 0.01F;
    skipped += is_small ? 1 : 0;
    REQUIRE(merged[i] == (is_small ? fixture.start[i] : fixture.start[i] + 0.5F * sum));
  }
  REQUIRE(skipped > 500);
  REQUIRE(skipped < 1000);
}

TEST_CASE("a mean is over the shares of those that take part", "[merger]") {
  const UpdateKind kind = GENERATE(UpdateKind::kFullDelta, UpdateKind::kGradientOnly);
  const std::size_t count = GENERATE(std::size_t{100}, kManyChunks);
  MergerFixture fixture(config_of({.kind = kind}), count);
  MergerFixture alone(config_of({.kind = kind}), count);
  fixture.shares = {{0, 0.25F}, {1, 1.75F}};
  fixture.contribute(0, 1, 0.01F);
  alone.contribute(0, 1, 0.01F);
  // The other one's is not there: what is left is the whole mean.
  const MergeResult result = fixture.merge_or_fail({{0, 1}, {1, 2}}, true);
  REQUIRE(result.rejected == std::vector{WorkerId{1}});
  alone.merge_or_fail({{0, 1}}, true);
  REQUIRE((fixture.stored(1) == alone.stored(1)));
  // Both are there: each by its share.
  const std::vector<float> before = fixture.stored(1);
  const auto a = fixture.contribute(0, 3, 0.01F), b = fixture.contribute(1, 3, 0.01F);
  fixture.merge_or_fail({{0, 3}, {1, 3}}, true);
  if (kind != UpdateKind::kFullDelta) return;
  const std::vector<float> after = fixture.stored(2);
  for (std::size_t i = 0; i < after.size(); ++i) {
    REQUIRE(after[i] == before[i] + 0.5F * (0.25F * a[i] + 1.75F * b[i]));
  }
}

TEST_CASE("a contribution at fault leaves no trace", "[merger]") {
  const int threads = GENERATE(1, 3);
  const std::string fault = GENERATE(as<std::string>(), "missing", "nan first", "inf last",
                                     "other run", "other worker", "other model", "damaged");
  CAPTURE(threads, fault);
  MergerFixture fixture({.threads = threads}, kManyChunks);
  const auto good = fixture.contribute(0, 1, 0.01F);
  std::vector<float> bad(kManyChunks, 0.25F);
  RecordInfo info = fixture.info(1, 2);
  if (fault == "nan first") bad.front() = std::numeric_limits<float>::quiet_NaN();
  if (fault == "inf last") bad.back() = -std::numeric_limits<float>::infinity();
  if (fault == "other run") info.version = 3;
  if (fault == "other worker") info.worker = 9;
  if (fault == "other model") info.model = Digest{8, 8};
  if (fault != "missing") fixture.put_contribution(1, info, bad);
  if (fault == "damaged") fixture.damage_contribution(1);
  const MergeResult result = fixture.merge_or_fail({{1, 2}, {0, 1}}, true);
  REQUIRE(result.rejected == std::vector{WorkerId{1}});
  REQUIRE(result.version == fixture.after(1));
  std::vector<float> expected = fixture.start;
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += good[i];
  REQUIRE((fixture.stored(1) == expected));
}

TEST_CASE("a merge that waits for what the store has lost is put off, and names that alone",
          "[merger]") {
  const std::string fault = GENERATE(as<std::string>(), "missing", "other run", "damaged");
  MergerFixture fixture({}, kManyChunks);
  fixture.waits_for_lost = true;
  fixture.contribute(0, 1, 0.01F);
  fixture.put_contribution(1, fixture.info(1, 2), std::vector<float>(kManyChunks, NAN));
  RecordInfo info = fixture.info(2, 3);
  if (fault == "other run") info.version = 2;
  if (fault != "missing") {
    fixture.put_contribution(2, info, std::vector<float>(kManyChunks, 0.25F));
  }
  if (fault == "damaged") fixture.damage_contribution(2);
  const MergeResult result = fixture.merge_or_fail({{0, 1}, {1, 2}, {2, 3}}, true);
  REQUIRE(result.rejected == std::vector{WorkerId{2}});
  REQUIRE(result.not_finite.empty());
  REQUIRE(result.version == fixture.after(0));
  REQUIRE(fixture.stored(0) == fixture.start);
  // It is there now; what is not finite is left out as ever.
  fixture.contribute(2, 4, 0.01F);
  const MergeResult again = fixture.merge_or_fail({{0, 1}, {1, 2}, {2, 4}}, true);
  REQUIRE(again.rejected == std::vector{WorkerId{1}});
  REQUIRE(again.not_finite == again.rejected);
  REQUIRE(again.version == fixture.after(1));
}

TEST_CASE("with no good contribution nothing changes", "[merger]") {
  MergerFixture fixture({}, 1000);
  fixture.put_contribution(1, fixture.info(1, 2), std::vector<float>(1000, NAN));
  const MergeResult result = fixture.merge_or_fail({{0, 1}, {1, 2}}, true);
  REQUIRE(result.rejected == std::vector{WorkerId{0}, WorkerId{1}});
  REQUIRE(result.version == fixture.after(0));
  REQUIRE(fixture.copy().weights == fixture.start);
  REQUIRE(fixture.stored(0) == fixture.start);
  REQUIRE(fixture.merge_or_fail({}, true).version == fixture.after(0));
}

TEST_CASE("versions follow each other, and the store has the newest", "[merger]") {
  MergerFixture fixture({}, 1000);
  std::vector<float> expected = fixture.start;
  for (std::uint64_t run = 1; run <= 7; ++run) {
    const auto delta = fixture.contribute(run % 2, run, 0.01F);
    REQUIRE(fixture.merge_or_fail({{run % 2, run}}, run % 3 == 0).version == fixture.after(run));
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += delta[i];
    REQUIRE(fixture.stored(run) == expected);
  }
}

TEST_CASE("jobs are done in order, and copies are of their moment", "[merger]") {
  MergerFixture fixture({}, 1000);
  fixture.contribute(0, 1, 0.01F);
  std::vector<std::future<Version>> versions;
  for (int i = 0; i < 3; ++i) {
    auto seen = std::make_shared<std::promise<Version>>();
    versions.push_back(seen->get_future());
    fixture.merger->copy(
        [seen](const Result<Merger::Copy>& copy) { seen->set_value(copy->version); });
    fixture.merger->merge(fixture.job({{0, 1}}, false), [](Result<MergeResult>) {});
  }
  for (std::uint64_t i = 0; i < 3; ++i) REQUIRE(versions[i].get() == fixture.after(i));
}

TEST_CASE("what is queued when the merger goes ends with an error", "[merger]") {
  MergerFixture fixture({}, kManyChunks);
  fixture.contribute(0, 1, 0.01F);
  std::atomic<int> done{0};
  for (int i = 0; i < 50; ++i) {
    fixture.merger->merge(fixture.job({{0, 1}}, false), [&](const Result<MergeResult>& result) {
      if (!result) CHECK(result.error().code == ErrorCode::kUnavailable);
      ++done;
    });
  }
  fixture.merger.reset();
  REQUIRE(done == 50);
}

TEST_CASE("weights that the store lost are published again", "[merger]") {
  MergerFixture fixture({}, 1000);
  fixture.contribute(0, 1, 0.01F);
  fixture.merge_or_fail({{0, 1}}, false);
  fixture.map->set_image({});
  SECTION("when a contribution is missing") {
    REQUIRE(fixture.merge_or_fail({{0, 2}}, false).rejected.size() == 1);
  }
  SECTION("when idle") {
    poll_until([&] { return fixture.store->read(weights_key()).has_value(); });
  }
  REQUIRE(fixture.stored(1) == fixture.copy().weights);
}

TEST_CASE("weights that the store lost last are published again at the end", "[merger]") {
  MergerFixture fixture({}, 1000);
  const auto before = fixture.map->image();
  fixture.contribute(0, 1, 0.01F);
  fixture.merge_or_fail({{0, 1}}, false);
  const auto weights = fixture.copy().weights;
  fixture.map->set_image(before);
  fixture.merger.reset();
  REQUIRE(fixture.stored(1) == weights);
}

TEST_CASE("weights that others wrote over are published again", "[merger]") {
  MergerFixture fixture({}, 1000);
  fixture.contribute(0, 1, 0.01F);
  fixture.merge_or_fail({{0, 1}}, false);
  const std::string manifest = "speedo:{m}:" + weights_key() + ":m";
  const auto keys = fixture.map->list("speedo:{m}:" + weights_key() + ":").value();
  for (const std::string& key : keys) {
    INFO(key);
    fixture.overwrite(key, "of another program");
  }
  const auto is_whole = [&] {
    const auto reader = fixture.store->read(weights_key());
    return reader && (*reader)->is_whole().value();
  };
  CHECK_FALSE(is_whole());
  poll_until(is_whole);
  CHECK(fixture.stored(1) == fixture.copy().weights);
  // One chunk alone, which no manifest misses.
  const auto now = fixture.map->list("speedo:{m}:" + weights_key() + ":").value();
  for (const std::string& key : now) {
    if (key != manifest) fixture.overwrite(key, "of another program");
  }
  CHECK_FALSE(is_whole());
  poll_until(is_whole);
  CHECK(fixture.stored(1) == fixture.copy().weights);
}

TEST_CASE("gradients go through the solver's rule", "[merger]") {
  MergerFixture fixture(config_of({.kind = UpdateKind::kGradientOnly}), kManyChunks);
  std::vector<double> w(fixture.start.begin(), fixture.start.end()), history(w.size(), 0.0);
  for (std::uint64_t run = 1; run <= 3; ++run) {
    const auto a = fixture.contribute(0, run, 0.1F), b = fixture.contribute(1, run, 0.1F);
    const MergeResult result = fixture.merge_or_fail({{0, run}, {1, run}}, true, run - 1);
    REQUIRE(result.version == fixture.after(run));
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double gradient = 0.5 * (double{a[i]} + double{b[i]}) + 0.01 * w[i];
      history[i] = 0.9 * history[i] + 0.1 * gradient;
      w[i] -= history[i];
    }
    const auto merged = fixture.stored(run);
    double worst = 0.0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      worst = std::max(worst, std::fabs(w[i] - double{merged[i]}));
    }
    REQUIRE(worst < 1e-6);
  }
  const Merger::Copy copy = fixture.copy();
  REQUIRE(copy.histories.size() == 1);
  double worst = 0.0;
  for (std::size_t i = 0; i < w.size(); ++i) {
    worst = std::max(worst, std::fabs(history[i] - double{copy.histories[0][i]}));
  }
  REQUIRE(worst < 1e-6);
}

TEST_CASE("a bad gradient leaves weights and history alone", "[merger]") {
  MergerFixture fixture(config_of({.kind = UpdateKind::kGradientOnly}), 1000);
  fixture.contribute(0, 1, 0.1F);
  fixture.merge_or_fail({{0, 1}}, true, 0);
  const Merger::Copy before = fixture.copy();
  auto bad = std::vector<float>(1000, 0.1F);
  bad[999] = std::numeric_limits<float>::infinity();
  fixture.put_contribution(1, fixture.info(1, 2), bad);
  REQUIRE(fixture.merge_or_fail({{1, 2}}, true, 1).rejected.size() == 1);
  REQUIRE(fixture.copy().weights == before.weights);
  REQUIRE(fixture.copy().histories == before.histories);
}

TEST_CASE("weights that overflow are taken back", "[merger]") {
  MergerFixture fixture(config_of({.kind = UpdateKind::kGradientOnly}), 1000);
  for (std::uint64_t run = 1;; ++run) {
    REQUIRE(run < 20);
    const Merger::Copy before = fixture.copy();
    fixture.put_contribution(0, fixture.info(0, run), std::vector<float>(1000, 3e38F));
    const auto result = fixture.merge({{0, run}}, true, run);
    if (result) continue;
    REQUIRE(result.error().code == ErrorCode::kNotFinite);
    const Merger::Copy after = fixture.copy();
    REQUIRE(after.version == before.version);
    REQUIRE(after.weights == before.weights);
    REQUIRE(after.histories == before.histories);
    break;
  }
}

TEST_CASE("histories begin where a snapshot ended", "[merger]") {
  MergerFixture first(config_of({.kind = UpdateKind::kGradientOnly}), 1000);
  first.contribute(0, 1, 0.1F);
  first.merge_or_fail({{0, 1}}, true, 0);
  const Merger::Copy middle = first.copy();
  first.contribute(0, 2, 0.1F);
  first.merge_or_fail({{0, 2}}, true, 1);

  const Checkpoint from{middle.version, middle.weights, middle.histories, middle.state};
  MergerFixture second(config_of({.kind = UpdateKind::kGradientOnly}), 1000, nullptr, &from);
  second.contribute(0, 2, 0.1F);
  second.merge_or_fail({{0, 2}}, true, 1);
  REQUIRE(second.copy().weights == first.copy().weights);
  REQUIRE(second.copy().histories == first.copy().histories);
}

}  // namespace speedo::test
