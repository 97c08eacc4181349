// What workers read, and work out, while they wait for their next order changes nothing.
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/skip.hpp"

#include "trainer_cluster.hpp"

namespace speedo {
namespace {

using test::TrainerCluster;

constexpr std::uint64_t kWorkers = 3;
// A worker expects the next version once it was ordered to the next one twice.
constexpr int kRoundsBefore = 3, kRoundsAhead = 4;

JobSpec coming_job(const UpdateSpec& update) {
  return {.solver_text = test::generated_solver(
              1,
              R"(base_lr: 0.1 lr_policy: "fixed" momentum: 0.9 weight_decay: 0.002
                 max_iter: 100 display: 0 random_seed: 5 )",
              true),
          .base = {},
          .stages = {update},
          .expected_workers = kWorkers};
}

std::vector<float> without_reading_ahead(const JobSpec& job) {
  TrainerParts parts = test::trainer_parts();
  parts.ahead_bytes_min = std::numeric_limits<std::uint64_t>::max();
  TrainerCluster cluster(job, kWorkers, {.parts = parts});
  for (int round = 0; round < kRoundsBefore + kRoundsAhead; ++round) cluster.round();
  return cluster.weights();
}

// `pieces`: that each worker does ahead of an order, chunks and products.
std::vector<float> reading_ahead(const JobSpec& job, std::uint64_t pieces) {
  TrainerCluster cluster(job, kWorkers);
  for (int round = 0; round < kRoundsBefore; ++round) cluster.round();
  for (int round = 0; round < kRoundsAhead; ++round) cluster.round_and_wait(pieces);
  return cluster.weights();
}

TEST_CASE("weights that are read ahead of their order are the same") {
  if (test::kernel_choice().deferred) SPEEDO_SKIP("a copy of an arena is not read ahead");
  const UpdateKind kind = GENERATE(UpdateKind::kFullDelta, UpdateKind::kGradientOnly);
  const JobSpec job = coming_job({.kind = kind});
  // In shared memory they are not read, but stay where they lie.
  const std::uint64_t pieces = test::kernel_choice().shared_memory ? 0 : 1;
  CHECK(reading_ahead(job, pieces) == without_reading_ahead(job));
}

TEST_CASE("steps that are read ahead of their order are the same, and so are products") {
  const bool factors = GENERATE(false, true);
  CAPTURE(factors);
  const JobSpec job = coming_job(
      {.kind = UpdateKind::kGradientOnly, .replicated = true, .factors = factors});
  // With factors the record's only chunk, and what a layer's gradient is a product of.
  CHECK(reading_ahead(job, factors ? 2 : 1) == without_reading_ahead(job));
}

}  // namespace
}  // namespace speedo
