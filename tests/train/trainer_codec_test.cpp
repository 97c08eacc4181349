// What codecs leave out of contributions is neither lost nor sent twice.
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "support/catch.hpp"
#include "support/random_seed.hpp"

#include <speedo/base/platform.hpp>
#include <speedo/base/random.hpp>
#include <speedo/store/memory_store.hpp>

#include "store/chunk_range.hpp"
#include "train/trainer/trainer_codec.hpp"
#include "train/trainer/trainer_exchange.hpp"
#include "trainer_cluster.hpp"

namespace speedo {
namespace {

constexpr std::size_t kCodedCount = kChunkElements + 1000;
constexpr Digest kCodedModel{.high = 3, .low = 4};

UpdateSpec coded(const std::string& codec, UpdateKind kind = UpdateKind::kFullDelta) {
  return {.kind = kind, .codec = test::value_of(parse_codec(codec))};
}

std::vector<float> random_values(Random& random) {
  std::vector<float> values(kCodedCount);
  for (float& value : values) value = random.gaussian(0.0F, 0.01F);
  return values;
}

// What a reader of the contribution sees; empty if it was not to be had.
std::vector<float> sent(TrainerCodec& codec, std::span<const float> values) {
  std::vector<float> seen(values.size());
  for (std::size_t chunk = 0; chunk < chunk_count(values.size()); ++chunk) {
    const auto bytes = codec.encode(chunk, chunk_of(values, chunk));
    if (!bytes) return {};
    REQUIRE(decode({.kind = codec.kind()}, *bytes, chunk_of(std::span(seen), chunk)));
  }
  return seen;
}

void add(std::vector<double>& sums, std::span<const float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) sums[i] += static_cast<double>(values[i]);
}

// Of what a worker with these runs computed and what was merged of it, with all that is left.
struct Account {
  std::vector<double> computed = std::vector<double>(kCodedCount);
  std::vector<double> merged = std::vector<double>(kCodedCount);

  double difference() const {
    double most = 0.0;
    for (std::size_t i = 0; i < kCodedCount; ++i) {
      most = std::max(most, std::abs(computed[i] - merged[i]));
    }
    return most;
  }
};

}  // namespace

TEST_CASE("merged contributions, with the rest, are what the worker has computed", "[codec]") {
  const std::string name =
      GENERATE("bf16", "fp16", "int8", "onebit", "threshold:0.01", "topk:2", "topk:100");
  CAPTURE(name);
  Random random(test::varied(1));
  TrainerCodec codec;
  REQUIRE(codec.enter_stage(coded(name), kCodedCount, true) == 0.0);
  Account account;
  std::uint64_t merged_run = kNoRun;
  constexpr std::uint64_t kRuns = 24;
  for (std::uint64_t run = 0; run < kRuns; ++run) {
    codec.begin_run(merged_run);
    merged_run = kNoRun;
    std::vector<float> values = random_values(random);
    const std::uint64_t fate = run + 1 < kRuns ? random.below(5) : 4;
    if (fate == 0) {  // It breaks off after one chunk.
      REQUIRE(codec.encode(0, chunk_of(std::span<const float>(values), 0)));
      continue;
    }
    const std::vector<float> original = values;
    std::vector<float> seen;
    if (fate == 1) {  // This one is handed over in memory.
      for (const std::size_t chunk : {0U, 1U}) {
        codec.complete(chunk, chunk_of(std::span(values), chunk));
      }
      seen = values;
    } else {
      seen = sent(codec, values);
    }
    codec.committed(run);
    if (fate == 2) continue;  // Nobody merges it.
    merged_run = run;
    add(account.computed, original);
    add(account.merged, seen);
  }
  codec.begin_run(merged_run);
  std::vector<float> rest(kCodedCount);
  for (const std::size_t chunk : {0U, 1U}) codec.complete(chunk, chunk_of(std::span(rest), chunk));
  const double without_rest = account.difference();
  add(account.merged, rest);
  CHECK(account.difference() < 1e-5);
  if (name != "topk:100") CHECK(without_rest > 1e-5);
}

TEST_CASE("a contribution that no codec can write leaves the rest as it was", "[codec]") {
  Random random(test::varied(2));
  TrainerCodec codec;
  codec.enter_stage(coded("int8"), kCodedCount, true);
  codec.begin_run(kNoRun);
  sent(codec, random_values(random));
  codec.committed(1);
  codec.begin_run(1);
  const double norm = codec.residual_norm();
  REQUIRE(norm > 0.0);
  std::vector<float> values = random_values(random);
  values.back() = std::numeric_limits<float>::infinity();
  CHECK(sent(codec, values).empty());
  codec.begin_run(kNoRun);
  CHECK(codec.residual_norm() == norm);
}

TEST_CASE("what was left out is kept for contributions of the same kind", "[codec]") {
  Random random(test::varied(3));
  TrainerCodec codec;
  REQUIRE(codec.enter_stage(coded("onebit"), kCodedCount, true) == 0.0);
  codec.begin_run(kNoRun);
  sent(codec, random_values(random));
  codec.committed(1);
  codec.begin_run(1);
  const double norm = codec.residual_norm();
  REQUIRE(norm > 0.0);
  CHECK(codec.enter_stage(coded("int8"), kCodedCount, true) == 0.0);
  CHECK(codec.residual_norm() == norm);
  CHECK(codec.enter_stage({}, kCodedCount, true) == 0.0);
  CHECK(codec.residual_norm() == norm);
  SECTION("contributions are of another kind") {
    CHECK(codec.enter_stage(coded("int8", UpdateKind::kGradientOnly), kCodedCount, true) == norm);
  }
  SECTION("the stage is not one that follows") {
    CHECK(codec.enter_stage({}, kCodedCount, false) == norm);
  }
  CHECK(codec.residual_norm() == 0.0);
}

// Of two parameters the first ends in the middle of a block of onebit, and behind it are padding
// and a parameter that does not learn; a statistic goes on from one chunk to the next.
TEST_CASE("what no gradient steers is sent as it is, and leaves nothing", "[codec]") {
  const std::string name = GENERATE("bf16", "fp16", "int8", "onebit", "threshold:1", "topk:0.1");
  const bool feeds_back = GENERATE(true, false);
  CAPTURE(name, feeds_back);
  ParameterLayout layout;
  const auto add = [&](std::int64_t count, bool is_statistic, float lr_mult = 1.0F) {
    ParameterSlot slot;
    slot.shape = Shape({count});
    slot.is_statistic = is_statistic;
    slot.lr_mult = lr_mult;
    return layout.add(slot);
  };
  const std::size_t first = add(1001, false);
  add(9, false, 0.0F);
  const std::size_t statistic = add(kChunkElements, true);
  const std::size_t second = add(5, false);
  const auto slot_of = [&](std::size_t element) {
    for (const std::size_t slot : {first, statistic, second}) {
      const auto at = static_cast<std::int64_t>(element) - layout.slots()[slot].offset;
      if (at >= 0 && at < layout.slots()[slot].count()) return slot;
    }
    return layout.slots().size();
  };
  const auto count = static_cast<std::size_t>(layout.element_count());
  TrainerCodec codec;
  codec.set_layout(layout);
  UpdateSpec update = coded(name);
  update.error_feedback = feeds_back;
  codec.enter_stage(update, count, true);
  Random random(test::varied(6));
  for (std::uint64_t run = 1; run <= 3; ++run) {
    codec.begin_run(run - 1);
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (slot_of(i) == statistic) values[i] = random.gaussian(0.0F, 1e6F);
      if (slot_of(i) == first || slot_of(i) == second) values[i] = random.gaussian(0.0F, 0.01F);
    }
    const std::vector<float> seen = sent(codec, values);
    codec.committed(run);
    for (std::size_t i = 0; i < count; ++i) {
      const bool is_steered = slot_of(i) == first || slot_of(i) == second;
      if (!is_steered && seen[i] != values[i]) FAIL(i << ": " << seen[i]);
    }
  }
  codec.settle(3);
  CHECK((codec.residual_norm() > 0.0) == feeds_back);
  CHECK(codec.residual_norm() < 100.0);
}

// The threshold sends 0.01 of 1 in each run, and holds back the rest.
TEST_CASE("what a threshold holds back does not come at once with another codec", "[codec]") {
  TrainerCodec codec;
  codec.enter_stage(coded("threshold:0.01"), kCodedCount, true);
  const std::vector<float> values(kCodedCount, 1.0F);
  for (std::uint64_t run = 1; run <= 3; ++run) {
    codec.begin_run(run - 1);
    sent(codec, values);
    codec.committed(run);
  }
  codec.settle(3);
  const double held = std::sqrt(static_cast<double>(kCodedCount));
  CHECK(codec.residual_norm() == Approx(3 * 0.99 * held).epsilon(1e-4));
  const std::string next = GENERATE("onebit", "none", "threshold:0.1");
  CAPTURE(next);
  CHECK(codec.enter_stage(coded(next), kCodedCount, true) ==
        Approx((3 * 0.99 - 0.05) * held).epsilon(1e-4));
  CHECK(codec.residual_norm() == Approx(0.05 * held).epsilon(1e-4));
}

TEST_CASE("a threshold goes on with all that it has held back", "[codec]") {
  TrainerCodec codec;
  codec.enter_stage(coded("threshold:0.01"), kCodedCount, true);
  codec.begin_run(kNoRun);
  sent(codec, std::vector<float>(kCodedCount, 1.0F));
  codec.committed(1);
  codec.settle(1);
  const double norm = codec.residual_norm();
  CHECK(codec.enter_stage(coded("threshold:0.01"), kCodedCount, true) == 0.0);
  CHECK(codec.residual_norm() == norm);
}

// The worker takes the half of the step that the centre takes.
TEST_CASE("what is formed on weights becomes what was sent of it", "[codec]") {
  const std::string name = GENERATE("fp16", "onebit", "topk:5");
  CAPTURE(name);
  Random random(test::varied(4));
  TrainerCodec codec;
  codec.enter_stage(coded(name, UpdateKind::kElastic), kCodedCount, true);
  std::shared_ptr<RecordStore> store = make_memory_store();
  std::atomic<std::uint64_t> progress{0};
  RecordExchange exchange({.store = store,
                           .model = kCodedModel,
                           .worker = WorkerId{0},
                           .contribution = contribution_key(0, 0),
                           .codec = codec,
                           .platform = real_platform()},
                          progress);
  const std::vector<float> centre = random_values(random);
  RecordInfo info;
  info.model = kCodedModel;
  info.version = 1;
  info.element_count = kCodedCount;
  REQUIRE(put(*store, weights_key(), info, centre));
  std::vector<float> formed(kCodedCount);
  codec.begin_run(kNoRun);
  exchange.begin_on_weights(5, 1, formed, [&](std::size_t offset, std::size_t count) {
    return std::span(formed).subspan(offset, count);
  });
  exchange.add(0, kCodedCount);
  REQUIRE(exchange.commit());
  std::vector<float> seen(kCodedCount);
  REQUIRE(get(*store, contribution_key(0, 0), kCodedModel, seen));
  CHECK(formed == seen);
  CHECK(formed != centre);
  CHECK(codec.residual_norm() == 0.0);
  CHECK(exchange.traffic().pushed_bytes < kCodedCount * sizeof(float));
}

// A snapshot between the two stages says what was merged before the next order does.
TEST_CASE("what the last run of a stage leaves out comes in the next stage, once", "[codec]") {
  const std::string solver = test::generated_solver(
      16, "base_lr: 0.05 lr_policy: \"fixed\" max_iter: 100 display: 0 random_seed: 5", false);
  std::vector<std::vector<float>> weights;
  for (const bool saves : {false, true}) {
    test::TrainerCluster cluster(
        {.solver_text = solver, .base = {}, .stages = {coded("topk:5"), coded("none")}}, 1);
    cluster.round();
    cluster.round();
    if (saves) cluster.save_states();
    cluster.enter_stage(1);
    cluster.round();
    weights.push_back(cluster.weights());
  }
  CHECK(test::relative_difference(weights[0], weights[1]) < 1e-6);
}

TEST_CASE("a cluster learns with every codec", "[codec]") {
  const UpdateKind kind =
      GENERATE(UpdateKind::kFullDelta, UpdateKind::kGradientOnly, UpdateKind::kElastic);
  // T is about the size of what is sent: gradients are larger than deltas by the rate.
  const std::string threshold =
      kind == UpdateKind::kGradientOnly ? "threshold:0.04" : "threshold:0.002";
  const std::string name = GENERATE("bf16", "fp16", "int8", "onebit", "threshold", "topk:5");
  CAPTURE(static_cast<int>(kind), name);
  UpdateSpec update = coded(name == "threshold" ? threshold : name, kind);
  if (kind == UpdateKind::kElastic) update.moving_rate = 0.4F;
  const std::string solver = test::generated_solver(
      16, "base_lr: 0.05 lr_policy: \"fixed\" max_iter: 100 display: 0 random_seed: 5", false);
  test::TrainerCluster cluster({.solver_text = solver, .base = {}, .stages = {update}}, 2);
  for (int round = 0; round < 80; ++round) cluster.round();
  CHECK(cluster.losses().back() < 0.6F * cluster.losses().front());
}

}  // namespace speedo
