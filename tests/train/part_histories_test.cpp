// What the mergers of parts leave of the solver's histories, for a master that merges the whole.

#include "train/parts/part_histories.hpp"

#include <cstddef>
#include <string>
#include <vector>

#include "train/joined_fixture.hpp"

namespace speedo::test {
namespace {

// A job in parts that has merged, and the same merged as a whole.
struct LeftByParts {
  explicit LeftByParts(std::size_t parts, std::uint64_t merges = 2)
      : joined(with_term({.kind = UpdateKind::kGradientOnly}), kJoinedCount, parts),
        plain(config_of({.kind = UpdateKind::kGradientOnly}), kJoinedCount) {
    for (std::uint64_t run = 1; run <= merges; ++run) {
      for (std::uint64_t worker = 0; worker < 2; ++worker) {
        const auto values =
            plain.padded(random_floats(kJoinedCount, 0.01F, 100 * worker + run));
        require(put(*joined.store, contribution_key(7, worker), plain.info(worker, run), values));
        plain.put_contribution(worker, plain.info(worker, run), values);
      }
      const MergerFixture::Runs runs = {{0, run}, {1, run}};
      joined.fixture->merge_or_fail(runs, true, run);
      plain.merge_or_fail(runs, true, run);
    }
    layout = joined.fixture->layout;
    joined.fixture.reset();
  }
  Result<PartHistories> read() { return read_part_histories(*joined.store, layout); }
  void lose(std::size_t part) { require(joined.store->erase(part_key(part, checkpoint_key()))); }
  void lose_copy(std::size_t part) {
    require(joined.store->erase(
        part_copy_key(part, joined.servers.size(), checkpoint_key())));
  }
  void put_version(std::size_t part, std::uint64_t version) {
    const PartClip clip{part, joined.servers.size()};
    RecordInfo info;
    info.model = clip_layout(layout, clip).digest();
    info.version = version;
    const std::vector<float> values(
        2 * clipped_count(static_cast<std::uint64_t>(layout.element_count()), clip), 1.0F);
    require(put(*joined.store, part_key(part, checkpoint_key()), info, values));
  }
  // By a master that has no use for histories.
  void put_weights(std::uint64_t term) {
    joined.store->fence(term);
    const RecordInfo info = (*joined.store->read(weights_key()))->info();
    require(put(*joined.store, weights_key(), info, std::vector<float>(info.element_count)));
  }

  Joined joined;
  MergerFixture plain;
  ParameterLayout layout;
};

}  // namespace

TEST_CASE("the histories that mergers of parts have left are joined, from copies too", "[merger]") {
  const std::size_t parts = GENERATE(1, 2, 3);
  LeftByParts left(parts);
  const Merger::Copy whole = left.plain.copy();
  REQUIRE(whole.histories.size() == 1);
  const auto found = left.read();
  require(found);
  CHECK((found->histories == whole.histories));
  CHECK_FALSE(found->are_older);
  if (parts == 1) return;
  left.lose(1);
  const auto copied = left.read();
  require(copied);
  CHECK((copied->histories == whole.histories));
  left.lose_copy(1);
  CHECK(left.read().error().code == ErrorCode::kNotFound);
}

TEST_CASE("a part's history may be older than the weights, not of an earlier master", "[merger]") {
  LeftByParts left(2);
  left.lose(0);
  left.lose_copy(0);
  left.put_version(0, 1);
  const auto older = left.read();
  require(older);
  CHECK(older->are_older);
  left.put_weights(8);
  CHECK(left.read().error().code == ErrorCode::kNotFound);
}

TEST_CASE("what mergers of parts have left goes with the first merge of the whole, not before",
          "[merger]") {
  LeftByParts left(2);
  const auto store = left.joined.store;
  const std::vector<std::string> keys = part_checkpoint_keys(2);
  REQUIRE(part_checkpoints_in(*store) == keys);
  auto start = read_checkpoint(*store, left.layout, true);
  require(start);
  start->histories = left.read().value().histories;
  start->replaced = keys;
  MergerConfig config = config_of({.kind = UpdateKind::kGradientOnly});
  config.term = 8;
  store->fence(8);
  MergerFixture whole(config, kJoinedCount, store, &*start);
  CHECK(part_checkpoints_in(*store) == keys);
  const auto values = whole.padded(random_floats(kJoinedCount, 0.01F, 9));
  require(put(*store, contribution_key(8, 0), whole.info(0, 9), values));
  left.plain.put_contribution(0, left.plain.info(0, 9), values);
  whole.merge_or_fail({{0, 9}}, true, 3);
  left.plain.merge_or_fail({{0, 9}}, true, 3);
  CHECK(part_checkpoints_in(*store).empty());
  const Merger::Copy now = whole.copy(), expected = left.plain.copy();
  CHECK((now.weights == expected.weights));
  CHECK((now.histories == expected.histories));
}

}  // namespace speedo::test
