// Replicated updates are those of the master's rule, with real nets, trainers, store and merger.
#include <string>
#include <vector>

#include "support/catch.hpp"

#include "train/replicas/step_header.hpp"
#include "trainer_cluster.hpp"

namespace speedo {
namespace {

using test::TrainerCluster;

constexpr UpdateSpec kByMaster{.kind = UpdateKind::kGradientOnly};
constexpr UpdateSpec kReplicated{.kind = UpdateKind::kGradientOnly, .replicated = true};
constexpr UpdateSpec kWithoutFactors{
    .kind = UpdateKind::kGradientOnly, .replicated = true, .factors = false};

std::string solver(const std::string& extra = "", int batch = 4) {
  return test::generated_solver(
      batch,
      R"(base_lr: 0.1 lr_policy: "inv" gamma: 0.01 power: 0.75 momentum: 0.9 weight_decay: 0.002
         max_iter: 100 display: 0 random_seed: 5 )" + extra,
      true);
}

// With a BatchNorm behind the first layer.
std::string with_statistics(std::string text) {
  const std::string before = R"(layer { name: "relu")";
  text.insert(text.find(before),
              R"(layer { name: "bn" type: "BatchNorm" bottom: "ip1" top: "ip1" })");
  return text;
}

JobSpec job_of(const std::string& text, std::vector<UpdateSpec> stages) {
  return {.solver_text = text,
          .base = {},
          .stages = std::move(stages),
          .expected_workers = 3};
}

std::vector<float> train(const JobSpec& job, std::uint64_t workers, int rounds) {
  TrainerCluster cluster(job, workers);
  for (int round = 0; round < rounds; ++round) cluster.round();
  return cluster.weights();
}

TEST_CASE("without factors they are those of the master, bit for bit") {
  const std::string extra = GENERATE("", "iter_size: 2", "clip_gradients: 0.5",
                                     "regularization_type: \"L1\"", "type: \"Nesterov\"");
  CAPTURE(extra);
  CHECK(train(job_of(solver(extra), {kWithoutFactors}), 3, 12) ==
        train(job_of(solver(extra), {kByMaster}), 3, 12));
}

TEST_CASE("with factors they are to rounding, and fewer bytes travel") {
  const std::string text = solver("", 1);
  TrainerCluster replicated(job_of(text, {kReplicated}), 3);
  TrainerCluster dense(job_of(text, {kByMaster}), 3);
  for (int round = 0; round < 12; ++round) {
    replicated.round();
    dense.round();
  }
  CHECK(test::relative_difference(replicated.weights(), dense.weights()) < 1e-5);
  const RunReport few = replicated.train(0), many = dense.train(0);
  CHECK(few.traffic.pushed_bytes < many.traffic.pushed_bytes / 2);
  CHECK(few.traffic.pulled_bytes < many.traffic.pulled_bytes);
}

TEST_CASE("several passes a step leave no factors") {
  TrainerCluster cluster(job_of(solver("iter_size: 2"), {kReplicated}), 2);
  cluster.round();
  CHECK(cluster.train(0).traffic.pushed_bytes ==
        static_cast<std::uint64_t>(cluster.layout().element_count()) * sizeof(float));
}

TEST_CASE("statistics that passes change are the master's at each step") {
  const std::string text = with_statistics(solver());
  CHECK(train(job_of(text, {kWithoutFactors}), 3, 8) == train(job_of(text, {kByMaster}), 3, 8));
}

TEST_CASE("who joins reads weights and histories, and then steps") {
  TrainerCluster replicated(job_of(solver(), {kWithoutFactors}), 2);
  TrainerCluster dense(job_of(solver(), {kByMaster}), 2);
  for (TrainerCluster* cluster : {&replicated, &dense}) {
    for (int round = 0; round < 4; ++round) cluster->round();
    cluster->add_worker();
    for (int round = 0; round < 4; ++round) cluster->round();
    cluster->prepare(0);
    for (int round = 0; round < 4; ++round) cluster->round();
  }
  CHECK(replicated.weights() == dense.weights());
}

TEST_CASE("a step that is gone is made good by the weights") {
  TrainerCluster replicated(job_of(solver(), {kWithoutFactors}), 2);
  TrainerCluster dense(job_of(solver(), {kByMaster}), 2);
  for (int round = 0; round < 6; ++round) {
    if (round % 2 == 1) REQUIRE(replicated.store()->erase(step_key(0)));
    replicated.round();
    dense.round();
  }
  CHECK(replicated.weights() == dense.weights());
}

TEST_CASE("workers that did not take part in a round follow it all the same") {
  TrainerCluster replicated(job_of(solver(), {kWithoutFactors}), 2);
  TrainerCluster dense(job_of(solver(), {kByMaster}), 2);
  for (TrainerCluster* cluster : {&replicated, &dense}) {
    cluster->round();
    for (int round = 0; round < 3; ++round) {
      cluster->train(0);
      cluster->merge({0}, true);
    }
    cluster->round();
    cluster->round();
  }
  CHECK(replicated.weights() == dense.weights());
}

TEST_CASE("stages with and without them follow one another") {
  const std::vector<UpdateSpec> stages{kWithoutFactors, kByMaster, kWithoutFactors};
  TrainerCluster replicated(job_of(solver(), stages), 2);
  TrainerCluster dense(job_of(solver(), {kByMaster, kByMaster, kByMaster}), 2);
  for (TrainerCluster* cluster : {&replicated, &dense}) {
    for (std::uint32_t stage = 0; stage < 3; ++stage) {
      if (stage > 0) cluster->enter_stage(stage);
      for (int round = 0; round < 3; ++round) cluster->round();
    }
  }
  CHECK(replicated.weights() == dense.weights());
}

TEST_CASE("the store has weights and histories for a master after this one") {
  TrainerCluster cluster(job_of(solver(), {kReplicated}), 2);
  for (int round = 0; round < 3; ++round) cluster.round();
  const Merger::Copy copy = cluster.copy();
  const Checkpoint found = cluster.checkpoint();
  CHECK(found.version == copy.version);
  CHECK(found.weights == copy.weights);
  CHECK(found.histories == copy.histories);
  CHECK(found.session == copy.state);
}

TEST_CASE("every so many versions all replicas' weights are compared, and are the same") {
  TrainerCluster cluster(job_of(solver(), {kReplicated}), 3);
  CHECK(count_equal_digests(cluster, 2 * kReplicaCheckInterval + 2) == 6);
}

}  // namespace
}  // namespace speedo
