#pragma once

#include <cstdint>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/train/trainer.hpp>

#include "local/private_redis.hpp"
#include "measure/calibrate/calibrate_parts.hpp"

namespace speedo {

// Durations of runs of one mini-batch.
struct StepTimes {
  // Without the tenth at either end. With one thread: on a processor, and waiting for data, so that
  // other programs disturb it less; with several, by the clock.
  double mean_seconds = 0.0;
  double clock_seconds = 0.0;  // the same by the clock
  double spread = 0.0;         // standard deviation over mean, of the same ones
  // With the exchange, by the clock, undisturbed(). Of one trainer without the time that other
  // programs kept it waiting.
  double cycle_seconds = 0.0;
  // On processors, a run: its trainer; all threads of this process and the store.
  double trainer_seconds = 0.0, processor_seconds = 0.0;
  std::uint64_t samples = 0;   // images of a mini-batch
};

// Lets `trainers` trainers of `parts` with backends of `compute` each train the job at once for so
// long, and measures their steps: without exchange, or with `redis` while each reads its weights
// from there, contributes, and has that merged, as workers of an asynchronous cluster do. Errors:
// those of the net, of its data, and of the store.
Result<StepTimes> measure_steps(const JobSpec& job, int trainers, const ComputeOptions& compute,
                                double seconds, const CalibrateParts& parts,
                                const PrivateRedis* redis = nullptr);

// Mean and spread without the tenth at either end. Requires: not empty.
StepTimes trimmed(std::vector<double> values);

}  // namespace speedo
