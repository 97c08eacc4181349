#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/train/trainer.hpp>

#include "measure/calibrate/calibrate_parts.hpp"
#include "sim/plan/cost_cluster.hpp"

namespace speedo {

struct CalibrateOptions {
  JobSpec job;
  CalibrateParts parts;
  std::string title;
  ComputeOptions compute;  // its threads are the cores that the machine is said to have
  double seconds_per_measurement = 1.5;
};

// One thing that was measured.
struct Measurement {
  std::string what;
  double value = 0.0;
  std::string unit;
};

struct Calibration {
  sim::ClusterCosts cluster;  // of this machine alone
  std::vector<Measurement> measurements;
  std::vector<std::string> doubts;  // why they may be wrong
};

// Seconds of a step of one trainer with so many threads.
struct ThreadTimes {
  int threads = 1;
  double seconds = 0.0;
};

// What speaks against measured steps, of which the first is of one thread: on a processor, and
// waiting for data. `clock_seconds`: that one's by the clock.
std::vector<std::string> doubts_of(const std::vector<ThreadTimes>& steps, double clock_seconds);

// Measures this net on this machine: its step with one and with several threads, with as many
// trainers as cores and with twice as many; reading, writing and merging its record in a
// redis-server of its own; a message over the loopback; codecs, and copies in memory. Forks: call
// it before the process has threads. Errors: those of the net and its data, and of starting Redis.
Result<Calibration> calibrate(const CalibrateOptions& options);

std::string to_text(const Calibration& calibration);

}  // namespace speedo
