#pragma once

#include <string>

#include "sim/plan/plan.hpp"
#include "sim/plan/plan_schedule.hpp"
#include "support/catch.hpp"

namespace speedo::sim {

// `workers` equal machines of one worker each and a head of its own, where nothing but computing
// takes time: one second a step.
inline ClusterCosts ideal_cluster() {
  ClusterCosts cluster;
  cluster.net = {.parameters = 250000, .batch = 10, .histories = 1};
  MachineCosts worker;
  worker.name = "worker";
  worker.count = 64;
  worker.workers_max = 1;
  MachineCosts head;
  head.name = "head";
  head.cores = 4.0;
  cluster.machines = {worker, head};
  cluster.store.machine = cluster.master.machine = "head";
  return cluster;
}

inline PlanResult plan_of(const ClusterCosts& cluster, const std::string& schedule,
                          std::uint64_t workers, std::uint64_t seed = 1,
                          std::uint64_t iterations = 200) {
  auto parsed = parse_plan_schedule(schedule);
  REQUIRE(parsed);
  auto made = make_schedule(*parsed, workers, std::nullopt);
  REQUIRE(made);
  PlanOptions options;
  options.schedule = *made;
  options.workers = workers;
  options.iterations = iterations;
  options.seed = seed;
  auto result = plan(cluster, options);
  if (!result) FAIL(result.error().message);
  return *result;
}

}  // namespace speedo::sim
