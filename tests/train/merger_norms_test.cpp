// Contributions that are looked at whole before they are merged: clipped, or left out.

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include <speedo/store/memory_store.hpp>

#include "train/merge/contribution_norms.hpp"
#include "train/merger_fixture.hpp"

namespace speedo::test {
namespace {

double norm_of(const std::vector<float>& values) {
  double sum = 0.0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

// Whose worker writes it anew when the master opens it for the second time.
class LateStore : public RecordStore {
 public:
  std::unique_ptr<RecordWriter> write(std::string_view key, const RecordInfo& info) override {
    return store_->write(key, info);
  }
  Result<std::unique_ptr<RecordReader>> read(std::string_view key) override {
    return store_->read(key);
  }
  std::vector<Result<std::unique_ptr<RecordReader>>> read_all(
      std::span<const std::string> keys) override {
    opened_ += 1;
    if (opened_ == 2 && write_late) write_late();
    return store_->read_all(keys);
  }
  std::unique_ptr<AheadReader> read_ahead(std::string_view key,
                                          const AheadRecord& record) override {
    return store_->read_ahead(key, record);
  }
  Result<void> erase(std::string_view key, std::uint64_t element_count) override {
    return store_->erase(key, element_count);
  }
  Result<void> clear_contributions() override { return store_->clear_contributions(); }

  std::function<void()> write_late;

 private:
  const std::shared_ptr<RecordStore> store_ = make_memory_store();
  int opened_ = 0;
};

TEST_CASE("a contribution that is written anew after the look at it is damaged", "[merger]") {
  const std::size_t count = GENERATE(std::size_t{1000}, kManyChunks);
  const UpdateKind kind = GENERATE(UpdateKind::kFullDelta, UpdateKind::kGradientOnly);
  const float late = GENERATE(1000.0F, std::numeric_limits<float>::quiet_NaN());
  MergerConfig config = config_of({.kind = kind});
  config.clip_norm = 1.0;
  const auto store = std::make_shared<LateStore>();
  MergerFixture fixture(config, count, store), plain(config, count);
  for (MergerFixture* each : {&fixture, &plain}) {
    each->contribute(0, 1, 0.01F);
    each->contribute(1, 1, 0.01F);
  }
  store->write_late = [&] {
    std::vector<float> values(count, 0.0F);
    values[count - 1] = late;
    fixture.put_contribution(1, fixture.info(1, 1), values);
  };
  const MergeResult result = fixture.merge_or_fail({{0, 1}, {1, 1}}, true);
  CHECK(result.rejected == std::vector{WorkerId{1}});
  CHECK(result.not_finite.empty());
  CHECK(result.outliers.empty());
  plain.merge_or_fail({{0, 1}}, true);
  CHECK((fixture.copy().weights == plain.copy().weights));
}

TEST_CASE("a contribution of a larger norm is scaled down to the limit", "[merger]") {
  const std::size_t count = GENERATE(std::size_t{1000}, kManyChunks);
  const bool mean = GENERATE(false, true);
  MergerConfig config;
  config.clip_norm = 1.0;
  MergerFixture fixture(config, count);
  std::vector<float> large(count, 0.0F), small(count, 0.0F);
  large[1] = 3.0F;
  large[count - 1] = 4.0F;
  small[2] = 0.5F;
  fixture.put_contribution(0, fixture.info(0, 1), large);
  fixture.put_contribution(1, fixture.info(1, 1), small);
  const MergeResult result = fixture.merge_or_fail({{0, 1}, {1, 1}}, mean);
  CHECK(result.rejected.empty());
  const float part = mean ? 0.5F : 1.0F;
  const std::vector<float> now = fixture.copy().weights;
  CHECK(now[1] - fixture.start[1] == Approx(0.6F * part).epsilon(1e-5));
  CHECK(now[count - 1] - fixture.start[count - 1] == Approx(0.8F * part).epsilon(1e-5));
  CHECK(now[2] - fixture.start[2] == Approx(0.5F * part).epsilon(1e-5));
}

TEST_CASE("a contribution far larger than those before is left out, and named as one", "[merger]") {
  const std::size_t count = GENERATE(std::size_t{1000}, kManyChunks);
  const UpdateKind kind = GENERATE(UpdateKind::kFullDelta, UpdateKind::kGradientOnly);
  MergerConfig config = config_of({.kind = kind});
  config.outlier_factor = 4.0;
  MergerFixture fixture(config, count);
  std::uint64_t run = 1;
  for (; run <= NormFilter::kNormsMin; ++run) {
    fixture.contribute(0, run, 0.01F);
    CHECK(fixture.merge_or_fail({{0, run}}, true).rejected.empty());
  }
  const std::vector<float> before = fixture.copy().weights;
  fixture.contribute(1, run, 1.0F);
  const MergeResult alone = fixture.merge_or_fail({{1, run}}, true);
  CHECK(alone.rejected == std::vector{WorkerId{1}});
  CHECK(alone.outliers == std::vector{WorkerId{1}});
  CHECK(alone.not_finite.empty());
  CHECK(alone.version == fixture.after(run - 1));
  CHECK((fixture.copy().weights == before));

  fixture.contribute(0, run + 1, 0.01F);
  fixture.contribute(1, run + 1, 1.0F);
  const MergeResult both = fixture.merge_or_fail({{0, run + 1}, {1, run + 1}}, true);
  CHECK(both.rejected == std::vector{WorkerId{1}});
  CHECK(both.version == fixture.after(run));
  CHECK((fixture.copy().weights != before));
}

TEST_CASE("what is not finite is told from what is missing, with and without norms", "[merger]") {
  MergerConfig config;
  config.clip_norm = GENERATE(0.0, 1e6);
  MergerFixture fixture(config, kManyChunks);
  fixture.contribute(0, 1, 0.01F);
  std::vector<float> bad(kManyChunks, 0.25F);
  bad[kManyChunks / 2] = std::numeric_limits<float>::quiet_NaN();
  fixture.put_contribution(1, fixture.info(1, 1), bad);
  const MergeResult result = fixture.merge_or_fail({{0, 1}, {1, 1}, {2, 1}}, true);
  CHECK(std::set(result.rejected.begin(), result.rejected.end()) ==
        std::set{WorkerId{1}, WorkerId{2}});
  CHECK(result.not_finite == std::vector{WorkerId{1}});
  CHECK(result.outliers.empty());
  CHECK(result.version == fixture.after(1));
}

TEST_CASE("norms under the limits change no bit", "[merger]") {
  MergerConfig config;
  config.clip_norm = 1e9;
  config.outlier_factor = 1e9;
  MergerFixture looked_at(config, kManyChunks), plain({}, kManyChunks);
  for (MergerFixture* each : {&looked_at, &plain}) {
    for (std::uint64_t worker = 0; worker < 3; ++worker) each->contribute(worker, 1, 0.01F);
    each->merge_or_fail({{0, 1}, {2, 1}, {1, 1}}, true);
  }
  CHECK(norm_of(plain.copy().weights) > 0.0);
  CHECK((looked_at.copy().weights == plain.copy().weights));
}

}  // namespace
}  // namespace speedo::test
