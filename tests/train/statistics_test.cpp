// BatchNorm's running statistics, which forward passes change, reach the master with every kind of
// update.
#include <cmath>

#include "support/catch.hpp"

#include "trainer_cluster.hpp"

namespace speedo {
namespace {

using test::TrainerCluster;

// The generated net with a BatchNorm and a Scale behind its first layer.
std::string solver(const std::string& extra = "") {
  std::string text = test::generated_solver(
      16,
      "base_lr: 0.1 lr_policy: \"fixed\" momentum: 0.9 max_iter: 100 display: 0 random_seed: 5 " +
          extra,
      false);
  const std::string before = R"(layer { name: "relu")";
  text.insert(text.find(before),
              R"(layer { name: "bn" type: "BatchNorm" bottom: "ip1" top: "ip1"
                         batch_norm_param { moving_average_fraction: 0.9 } }
                 layer { name: "scale" type: "Scale" bottom: "ip1" top: "ip1"
                         scale_param { bias_term: true } })");
  return text;
}

// What was seen so far: means, variances, weight.
std::vector<float> statistics(const ParameterLayout& layout, const std::vector<float>& weights) {
  std::vector<float> values;
  for (const ParameterSlot& slot : layout.slots()) {
    if (!slot.is_statistic) continue;
    const auto begin = weights.begin() + slot.offset;
    values.insert(values.end(), begin, begin + slot.count());
  }
  REQUIRE(values.size() == 2 * 24 + 1);
  return values;
}

std::vector<float> statistics(TrainerCluster& cluster) {
  return statistics(cluster.layout(), cluster.weights());
}

void check_close(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(1e-5).margin(1e-5));
}

TEST_CASE("with one worker the statistics are those of local training") {
  const UpdateSpec spec = GENERATE(values<UpdateSpec>({
      {.kind = UpdateKind::kFullDelta},
      {.kind = UpdateKind::kFullDelta, .steps_per_run = 3},
      {.kind = UpdateKind::kFullDelta, .updater = UpdaterState::kAverage},
      {.kind = UpdateKind::kGradientOnly},
  }));
  const std::string extra = GENERATE("", "iter_size: 2", "clip_gradients: 0.1 weight_decay: 0.01");
  CAPTURE(static_cast<int>(spec.kind), spec.steps_per_run, extra);
  TrainerCluster cluster({.solver_text = solver(extra), .base = {}, .stages = {spec}}, 1);
  for (int round = 0; round < 4; ++round) cluster.round();
  const int iterations = 4 * static_cast<int>(spec.steps_per_run);
  const auto alone = test::train_alone(solver(extra), iterations);
  check_close(statistics(cluster), statistics(cluster.layout(), alone));
  CHECK(statistics(cluster).back() > 2.0F);  // the weight: far from the start's 0
}

TEST_CASE("elastic averaging moves the centre's statistics with its weights") {
  const UpdateKind kind = GENERATE(UpdateKind::kElastic, UpdateKind::kElasticMaster);
  TrainerCluster cluster(
      {.solver_text = solver(), .base = {}, .stages = {{.kind = kind, .moving_rate = 0.5F}}}, 2);
  for (int round = 0; round < 4; ++round) cluster.round();
  const auto values = statistics(cluster);
  for (const float value : values) CHECK(std::isfinite(value));
  for (std::size_t variance = 24; variance < 48; ++variance) CHECK(values[variance] > 0.0F);
  CHECK(values.back() > 1.0F);
}

TEST_CASE("contributions that are averaged give the mean statistics, one after another all") {
  const UpdateKind kind = GENERATE(UpdateKind::kFullDelta, UpdateKind::kGradientOnly);
  const JobSpec job{.solver_text = solver(), .base = {}, .stages = {{.kind = kind}}};
  TrainerCluster mean(job, 2), each(job, 2);
  mean.train_all();
  mean.merge({0, 1}, true);
  CHECK(statistics(mean).back() == Approx(1.0));
  each.train(0);
  each.train(1);
  each.merge({0}, false);
  each.merge({1}, false);
  CHECK(statistics(each).back() == Approx(2.0));
  const auto means = statistics(mean), sums = statistics(each);
  for (std::size_t i = 0; i < means.size(); ++i) {
    CHECK(2.0F * means[i] == Approx(sums[i]).epsilon(1e-5).margin(1e-6));
  }
}

}  // namespace
}  // namespace speedo
