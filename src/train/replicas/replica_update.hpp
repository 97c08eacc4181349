#pragma once

#include <memory>
#include <string>
#include <vector>

#include <speedo/core/factor_shape.hpp>
#include <speedo/core/update_rule.hpp>

#include "train/trainer/trainer_update.hpp"

namespace speedo {

struct ReplicaOptions {
  std::unique_ptr<UpdateRule> rule;   // of the replica alone
  std::vector<FactorShape> factors;   // that the learner leaves
  std::size_t parts = 1;              // in which steps are made
  std::string step_key;
};

// A worker of replicated updates: keeps weights and histories from run to run, and applies the
// master's steps to them.
std::unique_ptr<WorkerUpdate> make_replica_update(const WorkerUpdate::Parts& parts,
                                                  ReplicaOptions options);

}  // namespace speedo
