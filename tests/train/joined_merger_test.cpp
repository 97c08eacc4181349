// A job's weights in parts, each with a merger of its own: what comes of merges is what one merger
// makes of them, whoever dies in between.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <speedo/base/limits.hpp>
#include <speedo/base/random.hpp>
#include <speedo/store/layout.hpp>

#include "store/chunk_range.hpp"
#include "store/mastership.hpp"
#include "train/joined_fixture.hpp"
#include "train/merge/merger_looks.hpp"
#include "train/parts/part_clip.hpp"

namespace speedo::test {

TEST_CASE("parts of a layout cover it, each element once", "[merger]") {
  const std::size_t parts = GENERATE(1, 2, 3, 5);
  Random random(parts);
  ParameterLayout layout;
  for (int i = 0; i < 40; ++i) {
    ParameterSlot slot;
    slot.layer = "layer";
    slot.index = i;
    slot.shape = Shape({1 + static_cast<std::int64_t>(random.uniform(0.0F, 30000.0F))});
    slot.lr_mult = static_cast<float>(i);
    layout.add(slot);
  }
  const auto count = static_cast<std::size_t>(layout.element_count());
  std::vector<float> rates(count, -1.0F), seen(count, -2.0F), numbers(count);
  for (const ParameterSlot& slot : layout.slots()) {
    std::fill_n(rates.begin() + slot.offset, slot.count(), slot.lr_mult);
  }
  for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(i);
  std::vector<float> back(count, -1.0F);
  for (std::size_t part = 0; part < parts; ++part) {
    const PartClip clip{part, parts};
    const ParameterLayout clipped = clip_layout(layout, clip);
    std::vector<float> values(static_cast<std::size_t>(clipped.element_count()), -1.0F);
    for (const ParameterSlot& slot : clipped.slots()) {
      std::fill_n(values.begin() + slot.offset, slot.count(), slot.lr_mult);
    }
    put_back(values, clip, seen);
    put_back(clip_values(numbers, clip), clip, back);
  }
  REQUIRE((seen == rates));
  REQUIRE((back == numbers));
}

TEST_CASE("parts merge what one merger merges, bit by bit", "[merger]") {
  const auto [parts, count] = GENERATE(
      table<std::size_t, std::size_t>({{1, kJoinedCount},
                                       {2, kJoinedCount},
                                       {4, kJoinedCount},
                                       {3, 100},
                                       {2, 2 * kChunkElements},
                                       {3, 2 * kChunkElements}}));
  const UpdateKind kind =
      GENERATE(UpdateKind::kFullDelta, UpdateKind::kGradientOnly, UpdateKind::kElastic);
  const bool mean = GENERATE(false, true);
  CAPTURE(parts, count, static_cast<int>(kind), mean);
  const MergerConfig config = with_term({.kind = kind, .factor = 2.0F});
  Joined joined(config, count, parts);
  MergerFixture plain(config, count);
  for (std::uint64_t run = 1; run <= 5; ++run) {
    for (std::uint64_t worker = 0; worker < 3; ++worker) {
      same_contribution(*joined.fixture, plain, worker, run);
    }
    const MergerFixture::Runs runs = {{0, run}, {2, run}, {1, run}};
    joined.fixture->state = plain.state = "state " + std::to_string(run);
    REQUIRE(joined.fixture->merge_or_fail(runs, mean, run).version == plain.after(run));
    REQUIRE(plain.merge_or_fail(runs, mean, run).version == plain.after(run));
    REQUIRE((joined.fixture->stored(run) == plain.stored(run)));
    REQUIRE((*joined.store->read(weights_key()))->info().state == plain.state);
  }
  const Merger::Copy a = joined.fixture->copy(), b = plain.copy();
  REQUIRE(a.version == b.version);
  REQUIRE(a.state == b.state);
  REQUIRE((a.weights == b.weights));
  REQUIRE((a.histories == b.histories));
}

TEST_CASE("a contribution at fault in one part is left out in all", "[merger]") {
  const MergerConfig config = with_term({});
  Joined joined(config, kJoinedCount, 3);
  MergerFixture& fixture = *joined.fixture;
  const auto good = fixture.padded(random_floats(kJoinedCount, 0.01F, 1));
  auto bad = good;
  const std::size_t chunk = GENERATE(std::size_t{0}, std::size_t{4}, std::size_t{5});
  bad[chunk * kChunkElements + 3] = NAN;
  require(put(*joined.store, contribution_key(7, 0), fixture.info(0, 1), good));
  require(put(*joined.store, contribution_key(7, 1), fixture.info(1, 1), bad));
  const MergeResult result = fixture.merge_or_fail({{0, 1}, {1, 1}, {5, 1}}, true);
  REQUIRE(result.version == fixture.after(1));
  std::vector<std::uint64_t> rejected;
  for (const WorkerId worker : result.rejected) rejected.push_back(worker.value);
  std::ranges::sort(rejected);
  REQUIRE(rejected == std::vector<std::uint64_t>{1, 5});
  // The other one was not there.
  REQUIRE(result.not_finite == std::vector<WorkerId>{WorkerId{1}});
  std::vector<float> expected = fixture.start;
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += good[i];
  REQUIRE((fixture.stored(1) == expected));
}

TEST_CASE("mergers elsewhere come, go and are replaced, and nothing shows it", "[merger]") {
  const UpdateKind kind = GENERATE(UpdateKind::kFullDelta, UpdateKind::kGradientOnly);
  const int dies_before = GENERATE(1, 2, 3, 4, 5);
  CAPTURE(static_cast<int>(kind), dies_before);
  const MergerConfig config = with_term({.kind = kind});
  Joined joined(config, kJoinedCount, 3);
  MergerFixture plain(config, kJoinedCount);
  std::vector<std::shared_ptr<Elsewhere>> mergers;
  for (std::uint64_t run = 1; run <= 8; ++run) {
    if (run == 2) {
      mergers.push_back(joined.offer(1, config));
      mergers.push_back(joined.offer(2, config));
      mergers[0]->die_before_answer(dies_before);
    }
    if (run == 6) mergers.push_back(joined.offer(2, config));
    merge_alike(joined, plain, run);
  }
  REQUIRE(mergers[0]->is_gone());
  REQUIRE(mergers[1]->orders() > 4);
  REQUIRE(mergers[1]->dismissed() == "another merger has this part now");
  REQUIRE(mergers[2]->orders() > 2);
  REQUIRE((joined.fixture->copy().weights == plain.copy().weights));
  REQUIRE((joined.fixture->copy().histories == plain.copy().histories));
}

TEST_CASE("a merger that goes while it opens its part is replaced, not waited for", "[merger]") {
  const MergerConfig config = with_term({.kind = UpdateKind::kFullDelta});
  Joined joined(config, kJoinedCount, 3);
  MergerFixture plain(config, kJoinedCount);
  merge_alike(joined, plain, 1);
  const auto merger = joined.offer(1, config);
  merger->die_before_answer(1);
  joined.fixture->merger->stop_waiting();
  merge_alike(joined, plain, 2);
  REQUIRE(merger->is_gone());
  REQUIRE(merger->orders() == 1);
}

TEST_CASE("parts leave nothing of former mergers and versions behind", "[merger]") {
  const MergerConfig config = with_term({});
  Joined joined(config, kJoinedCount, 2);
  for (std::uint64_t run = 1; run <= 6; ++run) {
    joined.offer(run % 2, config);
    merge_delta(joined, run);
  }
  for (std::uint64_t run = 7; run <= 12; ++run) {
    merge_delta(joined, run);
  }
  std::size_t chunks = 0, copies = 0;
  for (const auto& server : joined.servers) {
    for (const auto& [key, value] : server->image()) {
      if (key.find(":c") == std::string::npos) continue;
      chunks += key.find(":weights:") != std::string::npos ? 1 : 0;
      copies += key.find("/of-") != std::string::npos ? 1 : 0;
    }
  }
  REQUIRE(chunks == chunk_count(joined.fixture->elements) * 3);
  REQUIRE(copies == chunks);
}

TEST_CASE("a master goes on with what parts of an earlier one have left", "[merger]") {
  const UpdateKind kind = GENERATE(UpdateKind::kFullDelta, UpdateKind::kGradientOnly);
  MergerConfig config = with_term({.kind = kind});
  Joined joined(config, kJoinedCount, 3);
  MergerFixture plain(config, kJoinedCount);
  const auto merge = [&](std::uint64_t run) {
    same_contribution(*joined.fixture, plain, 0, run, config.term);
    joined.fixture->merge_or_fail({{0, run}}, false, run);
    plain.merge_or_fail({{0, run}}, false, run);
  };
  for (std::uint64_t run = 1; run <= 4; ++run) merge(run);
  joined.fixture->merger.reset();
  config.term = 8;
  REQUIRE((joined.go_on(config).weights == plain.stored(4)));
  for (std::uint64_t run = 5; run <= 7; ++run) merge(run);
  const Merger::Copy a = joined.fixture->copy(), b = plain.copy();
  REQUIRE((a.weights == b.weights));
  REQUIRE((a.histories == b.histories));
}

TEST_CASE("a part's merger that outlives its master leaves nothing beside the next one's",
          "[merger]") {
  MergerConfig config = with_term({.kind = UpdateKind::kFullDelta});
  Joined joined(config, kJoinedCount, 2);
  merge_delta(joined, 1);
  joined.fixture->merger.reset();
  const std::uint64_t last = (*joined.store->read(weights_key()))->info().version;
  Elsewhere late(joined.setup_of(1, config));
  std::promise<PartAnswer> answered;
  late.answer_to([&](PartAnswer answer) {
    if (!std::holds_alternative<part_answer::Lost>(answer)) answered.set_value(std::move(answer));
  });
  late.tell(part_order::Open{
      .id = 1, .from = {last}, .version = {last + 1}, .stage = 0, .first_slot = 30});
  const PartAnswer answer = answered.get_future().get();
  REQUIRE(std::holds_alternative<part_answer::Written>(answer));
  late.tell(part_order::Decide{.id = 1, .commit = true});

  config.term = 8;
  joined.go_on(config);
  auto of_the_dead = std::make_shared<ChunkedStore>(joined.map(), "m");
  of_the_dead->fence(7);
  const auto chunks_of_the_dead = [&] {
    std::size_t chunks = 0;
    for (const auto& [key, value] : joined.servers[1]->image()) {
      chunks += key.find(":weights:t7:s3") != std::string::npos ? 1 : 0;
    }
    return chunks;
  };
  REQUIRE(chunks_of_the_dead() > 0);
  // As the new master removes what a manifest names: it is not lost, and does not come back.
  of_the_dead->erase_copies(weights_key(), kJoinedCount, {30, 33, std::size_t{1}});
  std::this_thread::sleep_for(kMergerLookInterval + std::chrono::milliseconds(200));
  CHECK(chunks_of_the_dead() == 0);

  // A merge that it was late with.
  RecordInfo info;
  info.model = joined.fixture->layout.digest();
  info.version = last + 2;
  info.element_count = kJoinedCount;
  const auto part = of_the_dead->write_part(weights_key(), info, {1, 31});
  const std::vector<float> values(kJoinedCount);
  for (std::size_t chunk = 1; chunk < chunk_count(kJoinedCount); chunk += 2) {
    part->write(chunk, chunk_of(std::span<const float>(values), chunk));
  }
  require(part->finish());
  REQUIRE(chunks_of_the_dead() == chunk_count(kJoinedCount) / 2);
  late.die([] {});
  CHECK(chunks_of_the_dead() == 0);
  CHECK((*joined.store->read(weights_key()))->info().term == 8);
}

// Decisions overtake each other, and the thread that waits for one may see it late.
TEST_CASE("a part's merger that does not know what was decided writes over nothing", "[merger]") {
  const MergerConfig config = with_term({.kind = UpdateKind::kFullDelta});
  Joined joined(config, kJoinedCount, 2);
  merge_delta(joined, 1);
  joined.fixture->merger.reset();
  const Version last{(*joined.store->read(weights_key()))->info().version};
  const Version opened{last.value + 1};
  put_delta(joined, 2);
  Heard heard;
  Elsewhere merger(joined.setup_of(1, config));
  merger.answer_to([&](PartAnswer answer) { heard.put(std::move(answer)); });

  merger.tell(part_order::Decide{.id = 1, .commit = true});
  merger.tell(part_order::Decide{.id = 2, .commit = false});
  merger.tell(part_order::Open{
      .id = 1, .from = last, .version = opened, .stage = 0, .first_slot = 30});
  REQUIRE(std::holds_alternative<part_answer::Written>(heard.next()));

  const MergeJob job = joined.fixture->job({{0, 2}}, false);
  merger.tell(part_order::Merge{.id = 3, .base = opened, .job = job});
  REQUIRE(std::holds_alternative<part_answer::Written>(heard.next()));
  merger.tell(part_order::Decide{.id = 4, .commit = false});
  merger.tell(part_order::Merge{.id = 5, .base = opened, .job = job});
  const PartAnswer answer = heard.next();
  REQUIRE(std::holds_alternative<part_answer::Failed>(answer));
  CHECK(std::get<part_answer::Failed>(answer).error.code == ErrorCode::kMismatch);
}

TEST_CASE("a master is told that a newer one has its weights, when it opens a part", "[merger]") {
  const MergerConfig config = with_term({.kind = UpdateKind::kFullDelta});
  MergerConfig newer = config;
  newer.term += 1;
  Joined joined(newer, kJoinedCount, 2);
  const std::uint64_t theirs = (*joined.store->read(weights_key()))->info().version;
  Elsewhere late(joined.setup_of(1, config));
  std::promise<PartAnswer> answered;
  late.answer_to([&](PartAnswer answer) { answered.set_value(std::move(answer)); });
  late.tell(part_order::Open{
      .id = 1, .from = {theirs - 1}, .version = {theirs}, .stage = 0, .first_slot = 0});
  const PartAnswer answer = answered.get_future().get();
  const auto* const failed = std::get_if<part_answer::Failed>(&answer);
  REQUIRE(failed != nullptr);
  CHECK(failed->error.code == ErrorCode::kSuperseded);
}

TEST_CASE("a part is not opened from weights of an earlier master, nor from another version",
          "[merger]") {
  struct Case {
    std::uint64_t terms_later;
    bool from_earlier;  // than the version that is there, or from the one after it
    ErrorCode code;
  };
  const Case each = GENERATE(Case{1, true, ErrorCode::kNotFound},
                             Case{0, true, ErrorCode::kMismatch},
                             Case{0, false, ErrorCode::kNotFound});
  const MergerConfig config = with_term({.kind = UpdateKind::kFullDelta});
  Joined joined(config, kJoinedCount, 2);
  merge_delta(joined, 1);
  const std::uint64_t there = (*joined.store->read(weights_key()))->info().version;
  REQUIRE(there > 0);
  MergerConfig newer = config;
  newer.term += each.terms_later;
  Elsewhere next(joined.setup_of(1, newer));
  Heard heard;
  next.answer_to([&](PartAnswer answer) { heard.put(std::move(answer)); });
  const std::uint64_t from = each.from_earlier ? there - 1 : there + 1;
  next.tell(part_order::Open{
      .id = 1, .from = {from}, .version = {from + 1}, .stage = 0, .first_slot = 0});
  const PartAnswer answer = heard.next();
  const auto* const failed = std::get_if<part_answer::Failed>(&answer);
  REQUIRE(failed != nullptr);
  CHECK(failed->error.code == each.code);
}

TEST_CASE("parts of a master that was superseded write nothing more", "[merger]") {
  Joined joined(with_term({.kind = UpdateKind::kFullDelta}), kJoinedCount, 2);
  merge_delta(joined, 1);
  const auto contribute = [&](std::uint64_t run) {
    const std::vector<float> delta(joined.fixture->elements, 0.01F);
    require(put(*joined.store, contribution_key(7, 0), joined.fixture->info(0, run), delta));
  };
  contribute(2);
  MasterClaim claim;
  claim.holder = "new 2 2";
  claim.time = std::chrono::minutes(1);
  claim.force = true;
  std::uint64_t term = 0;
  while (term <= 7) {
    const auto answer = joined.store->claim_master(claim);
    require(answer);
    term = answer->term;
  }
  auto merged = joined.fixture->merge({{0, 2}}, false);
  REQUIRE_FALSE(merged);
  CHECK(merged.error().code == ErrorCode::kSuperseded);
  // The new master empties the store, and nothing would keep the old one from filling it again.
  joined.store->fence(0);
  require(joined.store->clear());
  contribute(3);
  merged = joined.fixture->merge({{0, 3}}, false);
  REQUIRE_FALSE(merged);
  CHECK(merged.error().code == ErrorCode::kSuperseded);
  CHECK_FALSE(joined.store->read(weights_key()));
}

TEST_CASE("a master whose parts are gone because another one has the job says that, not a loss",
          "[merger]") {
  const MergerConfig config = with_term({.kind = UpdateKind::kFullDelta});
  Joined joined(config, kJoinedCount, 2);
  const auto elsewhere = joined.offer(1, config);
  for (const std::uint64_t run : {1, 2}) merge_delta(joined, run);
  REQUIRE(elsewhere->orders() > 0);
  MasterClaim claim;
  claim.holder = "new 2 2";
  claim.time = std::chrono::minutes(1);
  claim.term_floor = config.term + 1;
  elsewhere->die([&] {
    require(claim_job(*joined.servers[0], "m", claim));
    joined.store->fence(0);
    require(joined.store->clear());
    joined.store->fence(config.term);
  });
  const std::optional<Error> said = what_it_waits_for(joined);
  REQUIRE(said.has_value());
  CHECK(said->code == ErrorCode::kSuperseded);
}

TEST_CASE("a newer master that one server alone knows of is spoken of between merges, too",
          "[merger]") {
  const MergerConfig config = with_term({.kind = UpdateKind::kFullDelta});
  Joined joined(config, kJoinedCount, 2);
  const auto elsewhere = merge_twice_elsewhere(joined, 0, config);
  MasterClaim claim;
  claim.holder = "new 2 2";
  claim.time = std::chrono::minutes(1);
  claim.term_floor = config.term + 1;
  require(claim_job(*joined.servers[1], "m:1", claim));
  // Its successor cannot put the copy on the next server.
  elsewhere->die([] {});
  const std::optional<Error> said = what_it_waits_for(joined);
  REQUIRE(said.has_value());
  CHECK(said->code == ErrorCode::kSuperseded);
}

TEST_CASE("the checkpoint of a master that merged alone goes when parts take over", "[merger]") {
  MergerConfig config = with_term({.kind = UpdateKind::kFullDelta});
  Joined joined(config, kJoinedCount, 2);
  const RecordInfo info = (*joined.store->read(weights_key()))->info();
  require(put(*joined.store, checkpoint_key(), info, std::vector<float>(info.element_count)));
  config.term += 1;
  joined.go_on(config);
  CHECK_FALSE(joined.store->read(checkpoint_key()));
}

TEST_CASE("how often parts write checkpoints goes by the size of the whole model", "[merger]") {
  MergerConfig config = with_term({.kind = UpdateKind::kGradientOnly});
  config.publish_interval = 0;
  constexpr std::size_t kLarge = kPublishEachMergeBytesMax / sizeof(float) + kChunkElements;
  const auto last_checkpoint = [&](std::size_t count, std::uint64_t merges) {
    Joined joined(config, count, 2);
    for (std::uint64_t run = 1; run <= merges; ++run) {
      const auto gradient = joined.fixture->padded(std::vector<float>(count, 0.01F));
      require(put(*joined.store, contribution_key(7, 0), joined.fixture->info(0, run), gradient));
      joined.fixture->merge_or_fail({{0, run}}, false);
    }
    const auto checkpoint = joined.store->read(part_key(1, checkpoint_key()));
    require(checkpoint);
    return (*checkpoint)->info().version - joined.fixture->first.value;
  };
  // The first merge's, as its merger found none.
  CHECK(last_checkpoint(kLarge, 4) <= 1);
  // While one is under way there is no other.
  CHECK(last_checkpoint(kJoinedCount, 12) > 1);
}

TEST_CASE("what needs the whole is not merged in parts", "[merger]") {
  caffe::SolverParameter solver;
  REQUIRE(check_parts({UpdateSpec{}}, solver));
  REQUIRE(check_parts({{.kind = UpdateKind::kElastic}}, solver));
  REQUIRE_FALSE(check_parts({{.kind = UpdateKind::kElasticMaster}}, solver));
  REQUIRE_FALSE(check_parts({UpdateSpec{}, {.updater = UpdaterState::kAverage}}, solver));
  REQUIRE(check_parts({{.kind = UpdateKind::kGradientOnly}}, solver));
  solver.set_clip_gradients(1.0F);
  REQUIRE_FALSE(check_parts({{.kind = UpdateKind::kGradientOnly}}, solver));
  REQUIRE(check_parts({UpdateSpec{}}, solver));
}

}  // namespace speedo::test
