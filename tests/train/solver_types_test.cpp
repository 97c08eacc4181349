// Every solver type in a cluster, with real nets, trainers, store and merger: as the workers' own
// rule, as the master's, and replicated.
#include <cmath>
#include <string>
#include <vector>

#include "support/catch.hpp"

#include "trainer_cluster.hpp"

namespace speedo {
namespace {

using test::TrainerCluster;

constexpr UpdateSpec kRuleOfMaster{.kind = UpdateKind::kGradientOnly};
constexpr UpdateSpec kRuleOfReplicas{
    .kind = UpdateKind::kGradientOnly, .replicated = true, .factors = false};

// Each with a rate that it learns with.
constexpr const char* kTypedSolvers[] = {
    "type: \"SGD\" base_lr: 0.1 momentum: 0.9",
    "type: \"Nesterov\" base_lr: 0.1 momentum: 0.9",
    "type: \"AdaGrad\" base_lr: 0.05",
    "type: \"RMSProp\" base_lr: 0.01 rms_decay: 0.9",
    "type: \"AdaDelta\" base_lr: 1 momentum: 0.9 delta: 1e-6",
    "type: \"Adam\" base_lr: 0.01 momentum: 0.9",
};

std::string typed_solver(const std::string& type, int batch = 8, bool dropout = true) {
  return test::generated_solver(
      batch, type + R"( lr_policy: "inv" gamma: 0.01 power: 0.75 weight_decay: 0.002
                        random_seed: 5 )",
      dropout);
}

JobSpec typed_job(const std::string& text, const UpdateSpec& update) {
  return {.solver_text = text, .base = {}, .stages = {update}, .expected_workers = 3};
}

std::vector<float> typed_weights(const JobSpec& job, std::uint64_t workers, int rounds) {
  TrainerCluster cluster(job, workers);
  for (int round = 0; round < rounds; ++round) cluster.round();
  return cluster.weights();
}

}  // namespace

TEST_CASE("every type: one worker is local training, bit for bit, whoever has the rule") {
  const std::string type = GENERATE(from_range(std::begin(kTypedSolvers), std::end(kTypedSolvers)));
  const char* extra = GENERATE("", " iter_size: 2 clip_gradients: 0.5");
  CAPTURE(type, extra);
  const std::string text = typed_solver(type + extra);
  const auto alone = test::train_alone(text, 20);
  CHECK(typed_weights(typed_job(text, {}), 1, 20) == alone);
  CHECK(typed_weights(typed_job(text, kRuleOfMaster), 1, 20) == alone);
  const UpdateSpec averaged{.updater = UpdaterState::kAverage};
  CHECK(test::relative_difference(typed_weights(typed_job(text, averaged), 1, 20), alone) < 1e-3);
}

TEST_CASE("every type: gradients in rounds are one larger batch") {
  const std::string type = GENERATE(from_range(std::begin(kTypedSolvers), std::end(kTypedSolvers)));
  CAPTURE(type);
  const auto alone = test::train_alone(typed_solver(type, 32, false), 20);
  const JobSpec job = typed_job(typed_solver(type, 16, false), kRuleOfMaster);
  CHECK(test::relative_difference(typed_weights(job, 2, 20), alone) < 1e-3);
}

TEST_CASE("every type: replicas are the master's rule, bit for bit, also those that join") {
  const std::string type = GENERATE(from_range(std::begin(kTypedSolvers), std::end(kTypedSolvers)));
  const char* extra = GENERATE("", " clip_gradients: 0.5");
  CAPTURE(type, extra);
  TrainerCluster replicated(typed_job(typed_solver(type + extra), kRuleOfReplicas), 2);
  TrainerCluster dense(typed_job(typed_solver(type + extra), kRuleOfMaster), 2);
  for (TrainerCluster* cluster : {&replicated, &dense}) {
    for (int round = 0; round < 4; ++round) cluster->round();
    cluster->add_worker();
    for (int round = 0; round < 4; ++round) cluster->round();
  }
  CHECK(replicated.weights() == dense.weights());
  CHECK(replicated.copy().histories == dense.copy().histories);
}

TEST_CASE("every type: the digests of all replicas are compared, and are the same") {
  const std::string type = GENERATE(from_range(std::begin(kTypedSolvers), std::end(kTypedSolvers)));
  CAPTURE(type);
  TrainerCluster cluster(typed_job(typed_solver(type), kRuleOfReplicas), 2);
  CHECK(count_equal_digests(cluster, kReplicaCheckInterval + 2) == 2);
}

TEST_CASE("every type: a job resumed at any merge is the uninterrupted one, bit for bit") {
  const std::string type = GENERATE(from_range(std::begin(kTypedSolvers), std::end(kTypedSolvers)));
  const UpdateSpec update =
      GENERATE(values<UpdateSpec>({kRuleOfMaster, kRuleOfReplicas,
                                   {.steps_per_run = 2, .updater = UpdaterState::kAverage}}));
  CAPTURE(type, update.replicated, static_cast<int>(update.updater));
  const JobSpec job = typed_job(typed_solver(type), update);
  TrainerCluster whole(job, 2);
  for (int round = 0; round < 5; ++round) whole.round();
  for (const int at : {0, 1, 3}) {
    CAPTURE(at);
    const auto store = make_memory_store();
    {
      TrainerCluster before(job, 2, {.store = store});
      for (int round = 0; round < at; ++round) before.round();
    }
    const auto checkpoint =
        test::value_of(read_checkpoint(*store, whole.layout(), wants_histories(job.stages)));
    TrainerCluster after(job, 2, {.store = store, .from = &checkpoint});
    for (int round = at; round < 5; ++round) after.round();
    CHECK(after.copy().weights == whole.copy().weights);
    CHECK(after.copy().histories == whole.copy().histories);
  }
}

TEST_CASE("every type learns in a cluster, as the workers' rule and as the master's") {
  const std::string type = GENERATE(from_range(std::begin(kTypedSolvers), std::end(kTypedSolvers)));
  const UpdateSpec update =
      GENERATE(values<UpdateSpec>(
          {{},
           kRuleOfMaster,
           kRuleOfReplicas,
           {.steps_per_run = 2, .updater = UpdaterState::kAverage},
           {.updater = UpdaterState::kReset},
           {.kind = UpdateKind::kElastic, .steps_per_run = 2, .moving_rate = 0.4F}}));
  CAPTURE(type, static_cast<int>(update.kind), update.replicated,
          static_cast<int>(update.updater));
  TrainerCluster cluster(typed_job(typed_solver(type, 16, false), update), 2);
  for (int round = 0; round < 60; ++round) cluster.round();
  CHECK(cluster.losses().back() < 0.7F * cluster.losses().front());
  for (const float weight : cluster.weights()) REQUIRE(std::isfinite(weight));
}

// Adam's first step has the size of the rate in every element, which biases have twice; a
// correction for histories that hold more updates than they do would make it 3.16 times as large.
TEST_CASE("Adam on a worker counts the updates of its own history") {
  const char* const adam = "type: \"Adam\" base_lr: 0.01 momentum: 0.9 weight_decay: 0 ";
  const std::string text =
      test::generated_solver(8, std::string(adam) + "lr_policy: \"fixed\" random_seed: 5", false);
  const auto largest_change = [](TrainerCluster& cluster, std::size_t worker) {
    cluster.train(worker);
    std::vector<float> delta(static_cast<std::size_t>(cluster.layout().element_count()));
    REQUIRE(get(*cluster.store(), contribution_key(0, worker), cluster.model(), delta));
    float largest = 0.0F;
    for (const float value : delta) largest = std::max(largest, std::fabs(value));
    return largest;
  };
  SECTION("one that joins late") {
    TrainerCluster cluster(typed_job(text, {}), 1);
    for (int round = 0; round < 30; ++round) cluster.round();
    cluster.add_worker();
    CHECK(largest_change(cluster, 1) == Approx(0.02F).epsilon(1e-3));
  }
  SECTION("one whose history is reset") {
    TrainerCluster cluster(typed_job(text, {.updater = UpdaterState::kReset}), 1);
    for (int round = 0; round < 30; ++round) cluster.round();
    CHECK(largest_change(cluster, 0) == Approx(0.02F).epsilon(1e-3));
  }
}

}  // namespace speedo
