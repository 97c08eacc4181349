#pragma once

// The nodes of node.hpp, for those who want to have their actors: nobody reaches them from outside.
#include <functional>

#include "actors/compat.hpp"
#include "actors/node.hpp"

namespace speedo {

// Gets each actor of a node once it lives.
using ActorSeen = std::function<void(const caf::actor& actor)>;

// The arguments of run_master() and run_worker().
struct MasterArguments {
  const MasterOptions& options;
  const MasterHooks& hooks;
  const TrainerParts& parts;
  const OpenStore& open_store;
  const MasterGate& gate;
};
Result<MasterProgress> run_master_seen(const MasterArguments& node, const ActorSeen& seen);

struct WorkerArguments {
  const WorkerOptions& options;
  const WorkerHooks& hooks;
  const TrainerParts& parts;
  const OpenStore& open_store;
};
Result<void> run_worker_seen(const WorkerArguments& node, const ActorSeen& seen);

}  // namespace speedo
