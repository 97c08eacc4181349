#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/train/schedule.hpp>

#include "sim/plan/cost_cluster.hpp"
#include "sim/plan/plan_net.hpp"

namespace speedo::sim {

struct PlanOptions {
  Schedule schedule;
  std::uint64_t workers = 1;
  std::uint64_t iterations = 200;   // merges
  std::uint64_t test_interval = 0;  // merges between tests of the net's weights; 0: never
  std::optional<double> stop_at_loss;  // a test that finds this or less ends the plan
  std::uint64_t seed = 1;
  std::stop_token stop = {};  // breaks the plan off
};

// What the net had learned at a time.
struct PlanPoint {
  double seconds = 0.0;
  std::uint64_t iteration = 0;
  float loss = 0.0F, accuracy = 0.0F;
};

// What a schedule does on a cluster. Times are virtual and begin with the first run.
struct PlanResult {
  double seconds = 0.0;                 // to the last merge
  std::uint64_t iterations = 0;         // merges
  std::uint64_t contributions = 0, discarded = 0;
  double iterations_per_second = 0.0;
  double images_per_second = 0.0;       // of contributions that were merged
  double speed_up = 0.0;                // images/s over those of one worker without a cluster
  double staleness = 0.0;               // merges between reading and merging, mean
  double bytes_per_second = 0.0;        // in and out of the store
  double bytes_per_iteration = 0.0;
  // Parts of the time. The master merges beside handling messages: what it does longer.
  double store_busy = 0.0, master_busy = 0.0;
  double messages_busy = 0.0;           // of the master, with messages
  double link_busy = 0.0;               // of the busiest link, either way
  std::string link_host;                // whose it is
  // Parts of the workers' time; the rest is waiting for others.
  double computing = 0.0, exchanging = 0.0;
  std::vector<PlanPoint> curve;
};

// Runs real sessions and the real schedule under the cluster's durations until so many merges are
// done. Same arguments: same result. Error: kConfig for a cluster that cannot take the workers or
// fails check(); those of the net; kUnavailable if it was broken off.
Result<PlanResult> plan(const ClusterCosts& cluster, const PlanOptions& options, PlanNet& net);
// The same without numbers.
Result<PlanResult> plan(const ClusterCosts& cluster, const PlanOptions& options);

// Seconds of a merge of so many contributions that are there, with nothing else going on.
double merge_seconds_alone(const ClusterCosts& cluster, const UpdateSpec& update,
                           std::uint64_t contributions);

}  // namespace speedo::sim
