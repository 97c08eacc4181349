#pragma once

#include <memory>

#include <speedo/base/clock.hpp>
#include <speedo/base/result.hpp>

#include "train/trainer/learner.hpp"

namespace speedo {

// Computing that only takes time, so that exchange and control can be measured with more workers
// than the machine has cores.
struct EmulatedCompute {
  Instant step{0};      // of one pass forward and backward
  double spread = 0.0;  // each takes up to so much less or more: a part of the step, 0 to 1
};

// A learner with the layout of the job's net, which it does not run. A third of a step goes forward
// and two thirds backward, over the layers by their multiplications and additions: weights are
// needed, and gradients final, layer by layer as with a net that does nothing else. Gradients are
// the same small numbers for the same shard of the data, whatever the weights; the loss is 1. Takes
// memory for weights and gradients, and a core's time for writing the gradients.
// Errors: those of the net, whose data must be there (its shapes may come from them).
Result<std::unique_ptr<Learner>> make_emulated_learner(const TrainerParts& parts,
                                                       const EmulatedCompute& compute,
                                                       const LearnerOptions& options);

}  // namespace speedo
