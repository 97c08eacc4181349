#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/train/schedule.hpp>
#include <speedo/train/trainer.hpp>

#include "sim/plan/cost_cluster.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/plan_net.hpp"

namespace speedo::sim {

// A net that is really trained: a trainer's engine for each worker, a merger's engine, and a store
// in memory between them. Its size and speed are not those that the plan computes with.
struct TrainedNetOptions {
  JobSpec job;                 // its stages are replaced by the schedule
  Schedule schedule;
  std::uint64_t workers = 1;
  std::uint64_t samples = 1;   // that a run of the planned net has
};
// Errors: those of building the net and its data.
Result<std::unique_ptr<PlanNet>> make_trained_net(const TrainerParts& parts,
                                                  const TrainedNetOptions& options);

// The same machine with one worker and nothing to exchange with.
ClusterCosts without_cluster(const ClusterCosts& cluster);

// When the curve first is at or below that loss, between two points in a straight line; none if it
// never is.
std::optional<double> seconds_to_loss(const std::vector<PlanPoint>& curve, double loss);

}  // namespace speedo::sim
