#pragma once

#include <cstdint>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/train/trainer.hpp>

#include "main/parts.hpp"

namespace speedo {

// Durations of runs of one mini-batch.
struct StepTimes {
  double mean_seconds = 0.0;   // without the tenth at either end
  double spread = 0.0;         // standard deviation over mean, of the same ones
  std::uint64_t samples = 0;   // images of a mini-batch
};

// Lets `trainers` trainers with backends of `compute` each train the job at once for so long,
// without exchange, and measures their steps. Errors: those of the net and its data.
Result<StepTimes> measure_steps(const JobSpec& job, int trainers, const ComputeOptions& compute,
                                double seconds);

// Mean and spread without the tenth at either end. Requires: not empty.
StepTimes trimmed(std::vector<double> values);

}  // namespace speedo
