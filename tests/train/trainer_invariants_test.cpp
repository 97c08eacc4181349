// The invariants of data-parallel training, with real nets, trainers, store and merger.
#include <algorithm>
#include <cmath>

#include "support/catch.hpp"

#include "trainer_cluster.hpp"

namespace speedo {
namespace {

using test::TrainerCluster;

constexpr UpdateSpec kGradients{.kind = UpdateKind::kGradientOnly};
constexpr const char* kSolver = R"(
    base_lr: 0.1 lr_policy: "inv" gamma: 0.01 power: 0.75 momentum: 0.9 weight_decay: 0.002
    max_iter: 100 display: 0 )";

std::string solver(int batch, bool dropout, const std::string& extra = "", int seed = 5) {
  return test::generated_solver(
      batch, kSolver + extra + " random_seed: " + std::to_string(seed), dropout);
}

std::vector<float> train_in_cluster(const JobSpec& job, std::uint64_t workers, int rounds) {
  TrainerCluster cluster(job, workers);
  for (int round = 0; round < rounds; ++round) cluster.round();
  return cluster.weights();
}

}  // namespace

TEST_CASE("async with one worker is local training, bit for bit") {
  for (const char* extra :
       {"", "iter_size: 2 clip_gradients: 0.5", "regularization_type: \"L1\""}) {
    CAPTURE(extra);
    const std::string text = solver(16, true, extra);
    const auto alone = test::train_alone(text, 30);
    const auto cluster = train_in_cluster({.solver_text = text, .base = {}}, 1, 30);
    CHECK(std::equal(alone.begin(), alone.end(), cluster.begin(), cluster.end()));
  }
}

TEST_CASE("a run of several steps is as many local iterations") {
  const std::string text = solver(16, true);
  const auto alone = test::train_alone(text, 30);
  const auto cluster =
      train_in_cluster({.solver_text = text, .base = {}, .stages = {{.steps_per_run = 3}}}, 1, 10);
  CHECK(test::relative_difference(cluster, alone) < 1e-5);
}

TEST_CASE("sync gradient only, 2 workers of batch 32 are one of batch 64") {
  const auto alone = test::train_alone(solver(64, false), 50);
  const JobSpec job{.solver_text = solver(32, false), .base = {}, .stages = {kGradients}};
  CHECK(test::relative_difference(train_in_cluster(job, 2, 50), alone) < 1e-4);
}

TEST_CASE("gradient only with one worker is local training, bit for bit") {
  const std::string text = solver(16, true);
  const JobSpec job{.solver_text = text, .base = {}, .stages = {kGradients}};
  CHECK(train_in_cluster(job, 1, 20) == test::train_alone(text, 20));
}

TEST_CASE("the same seed gives the same weights, bit for bit; another seed others") {
  for (const UpdateKind update : {UpdateKind::kFullDelta, UpdateKind::kGradientOnly}) {
    const JobSpec job{.solver_text = solver(8, true), .base = {}, .stages = {{.kind = update}}};
    const auto first = train_in_cluster(job, 3, 15);
    CHECK(first == train_in_cluster(job, 3, 15));
    const JobSpec other{
        .solver_text = solver(8, true, "", 6), .base = {}, .stages = {{.kind = update}}};
    CHECK(first != train_in_cluster(other, 3, 15));
  }
}

TEST_CASE("a cluster learns") {
  const JobSpec job{.solver_text = solver(16, false), .base = {}};
  TrainerCluster cluster(job, 2);
  for (int round = 0; round < 60; ++round) cluster.round();
  CHECK(cluster.losses().back() < 0.5F * cluster.losses().front());
}

}  // namespace speedo
