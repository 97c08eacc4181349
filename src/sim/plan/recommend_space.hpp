#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/train/schedule.hpp>

#include "sim/plan/cost_cluster.hpp"
#include "sim/plan/plan_schedule.hpp"
#include "sim/plan/recommend_machines.hpp"

namespace speedo::sim {

// One way to use a cluster.
struct Candidate {
  PlanSchedule schedule;
  Contributes contributes = Contributes::kDeltas;
  std::uint64_t workers = 1;
  std::uint64_t shards = 0;
  std::string codec = "none";
  std::uint64_t batch = 1;
  double step_times = 1.0;  // a mini-batch takes so many times as long as the described one
  UsedMachines machines = {};
};

// What may be chosen. Empty lists: what the cluster gives.
struct SpaceOptions {
  std::vector<PlanSchedule> schedules = {};
  std::vector<std::uint64_t> workers = {};
  std::optional<std::uint64_t> shards = std::nullopt;
  std::string codec = {};
  bool lossy = false;  // codecs that lose something, too
};

// All that is possible of: every choice of machines (machine_choices); every schedule with its
// usual number and some communication periods; rounds with full deltas, with gradients alone, and
// replicated; as many workers as there is room for (kWorkersMax at most), half as many, ...; no
// shards, or 2, 4, 8, 16; every codec if lossy ones are allowed; every batch that is described.
// What check_schedule() and check_exchange() refuse is left out. Error: kConfig if the machines do
// not take that many workers, or if nothing is left.
Result<std::vector<Candidate>> candidates_of(const ClusterCosts& cluster,
                                             const SpaceOptions& options);

// Whether workers, servers and master are on one machine: `speedo run`, with one server beside the
// shards'.
bool is_one_machine(const ClusterCosts& cluster, std::uint64_t workers);

// The cluster and the schedule as the candidate uses them.
ClusterCosts cluster_for(const ClusterCosts& cluster, const Candidate& candidate);
Result<Schedule> schedule_for(const Candidate& candidate);

// Whether each update is that of one worker with the batch of all: rounds of one mini-batch each,
// every contribution merged before anybody goes on, and nothing lost on the way.
bool learns_alike(const Candidate& candidate);

// Images a second that no plan of it exceeds by more than its spread of steps: what the links, the
// servers, the merger and the processors allow, each by itself.
double images_bound(const ClusterCosts& cluster, const Candidate& candidate);

}  // namespace speedo::sim
