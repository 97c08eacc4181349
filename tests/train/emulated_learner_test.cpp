#include "train/trainer/emulated_learner.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <chrono>
#include <vector>

#include "support/catch.hpp"

#include "trainer_cluster.hpp"

namespace speedo {
namespace {

constexpr Instant kStep = std::chrono::milliseconds(12);

struct Emulated {
  Emulated() {
    parts.shares_memory = false;
    solver = test::value_of(parse_solver(job));
    learner = test::value_of(make_emulated_learner(
        parts, {.step = kStep},
        {.job = job, .solver = solver, .start_fraction = 0.0, .progress = progress}));
  }

  std::vector<float> gradients() {
    std::vector<float> values(static_cast<std::size_t>(learner->layout().element_count()));
    learner->backend().device().download(values, learner->gradients().data());
    return values;
  }
  Instant time_of(int passes, const Learner::Hooks& hooks = {}) {
    const Instant start = parts.platform->clock().now();
    REQUIRE(test::value_of(learner->accumulate_gradients(passes, hooks)) == 1.0F);
    return parts.platform->clock().now() - start;
  }

  JobSpec job{.solver_text = test::generated_solver(8, "base_lr: 0.1 lr_policy: \"fixed\" "
                                                       "max_iter: 9 random_seed: 5",
                                                    false),
              .base = {}};
  TrainerParts parts = test::trainer_parts();
  caffe::SolverParameter solver;
  std::atomic<std::uint64_t> progress{0};
  std::unique_ptr<Learner> learner;
};

}  // namespace

TEST_CASE("an emulated learner has the real net's layout and batch, and takes the time it was told",
          "[emulated]") {
  Emulated emulated;
  const auto net = test::value_of(make_net_learner(
      emulated.parts, {.job = emulated.job,
                       .solver = emulated.solver,
                       .start_fraction = 0.0,
                       .progress = emulated.progress}));
  CHECK(emulated.learner->layout().digest() == net->layout().digest());
  CHECK(emulated.learner->batch_size() == net->batch_size());
  CHECK(emulated.time_of(3) >= 3 * kStep - std::chrono::milliseconds(1));
  CHECK(emulated.learner->gone_forward() > kStep / 2);
  CHECK(emulated.progress > 0);
}

TEST_CASE("an emulated learner asks for weights from the front and gives gradients from the back",
          "[emulated]") {
  Emulated emulated;
  std::vector<Bucket> needed, ready;
  const Instant start = emulated.parts.platform->clock().now();
  Instant first{0}, begun{0};
  Learner::Hooks hooks;
  hooks.weights_needed = [&](const Bucket& bucket) -> Result<void> {
    needed.push_back(bucket);
    return {};
  };
  hooks.last_backward = [&] { begun = emulated.parts.platform->clock().now() - start; };
  hooks.gradient_ready = [&](const Bucket& bucket, const StreamEvent&) {
    if (ready.empty()) first = emulated.parts.platform->clock().now() - start;
    ready.push_back(bucket);
  };
  emulated.time_of(1, hooks);
  CHECK(begun >= kStep / 3 - std::chrono::milliseconds(1));
  CHECK(first >= begun);
  const std::int64_t count = emulated.learner->layout().element_count();
  REQUIRE(needed.size() > 2);
  CHECK(needed.back().offset == 0);
  CHECK(needed.back().count == count);
  needed.pop_back();
  std::ranges::reverse(ready);
  REQUIRE(ready.size() == needed.size());
  std::int64_t end = 0;
  for (std::size_t i = 0; i < ready.size(); ++i) {
    CHECK(ready[i].offset == needed[i].offset);
    CHECK(ready[i].count == needed[i].count);
    CHECK(ready[i].offset == end);
    end = ready[i].offset + ready[i].count;
  }
  CHECK(end == count);
}

TEST_CASE("emulated gradients are finite, small, of the shard, and zero where a net's are",
          "[emulated]") {
  Emulated one, other;
  one.learner->set_batch_span({.first = 7, .count = 1, .next = 8});
  other.learner->set_batch_span({.first = 7, .count = 1, .next = 8});
  one.time_of(1);
  other.time_of(1);
  const std::vector<float> first = one.gradients();
  CHECK(first == other.gradients());
  one.time_of(1);
  CHECK(one.gradients() != first);
  std::vector<char> is_weight(first.size(), 0);
  for (const ParameterSlot& slot : one.learner->layout().slots()) {
    if (slot.is_statistic) continue;
    std::fill_n(is_weight.begin() + slot.offset, slot.count(), 1);
  }
  for (std::size_t i = 0; i < first.size(); ++i) {
    REQUIRE(std::isfinite(first[i]));
    REQUIRE(std::abs(first[i]) < 0.01F);
    if (is_weight[i] == 0) REQUIRE(first[i] == 0.0F);
  }
}

TEST_CASE("emulated workers train rounds as others do", "[emulated]") {
  test::TrainerCluster::Options options;
  const TrainerParts plain = options.parts;
  options.parts.make_learner = [plain](const LearnerOptions& learner) {
    return make_emulated_learner(plain, {.step = std::chrono::milliseconds(1), .spread = 0.5},
                                 learner);
  };
  const Emulated source;
  test::TrainerCluster cluster(source.job, 3, options);
  for (int round = 0; round < 5; ++round) cluster.round();
  CHECK(cluster.iteration() == 5);
  CHECK(cluster.losses().front() == 1.0F);
}

}  // namespace speedo
