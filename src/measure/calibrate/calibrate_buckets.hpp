#pragma once

#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/train/trainer.hpp>

#include "cli/compute_options.hpp"
#include "measure/calibrate/calibrate_parts.hpp"
#include "sim/plan/cost_cluster.hpp"

namespace speedo {

// When a trainer's mini-batch uses and makes what is exchanged; parts of its time, medians.
struct BucketTimes {
  std::vector<sim::BucketCosts> buckets;  // in the net's order, together all parameters
  double update = 0.0;                    // the rule's
  double product_seconds = 0.0;           // of all their products, of one worker's factors
  bool clips = false;                     // the rule waits for the whole gradient
};

// Lets one trainer with a backend of `compute` train the job for so long, with an exchange that
// takes no time, and notes when its net asks for buckets of the weights and reports those of the
// gradient; then makes the gradients that are products. Errors: those of the net and of its data.
Result<BucketTimes> measure_buckets(const JobSpec& job, const ComputeOptions& compute,
                                    double seconds, const CalibrateParts& parts);

}  // namespace speedo
