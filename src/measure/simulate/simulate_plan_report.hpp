#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/cost_cluster.hpp"
#include "sim/plan/plan.hpp"

namespace speedo {

// What one schedule does with so many workers.
struct PlanRow {
  std::string schedule;
  std::uint64_t workers = 1;
  sim::PlanResult result;
  // With --train: until the loss that one worker without a cluster reaches, if it was reached.
  std::optional<double> seconds_to_loss, speed_up_to_loss;
};

// A trained net's way on one worker without a cluster, that the others are compared with.
struct PlanBaseline {
  double loss = 0.0;     // to be reached
  double seconds = 0.0;  // that it takes
  std::vector<sim::PlanPoint> curve;
};

struct PlanReport {
  sim::ClusterCosts cluster;
  std::uint64_t seed = 0;
  std::optional<PlanBaseline> baseline;  // with --train
  std::vector<PlanRow> rows;             // by schedule, then by workers
};

std::string to_json(const PlanReport& report);
// For people: a line a row, in columns.
std::string to_table(const PlanReport& report);

}  // namespace speedo
