#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <speedo/train/schedule.hpp>

#include "cli/solver_file.hpp"
#include "main/parts.hpp"
#include "measure/memory_guard.hpp"

namespace speedo {

// A cluster that is started on this machine, as far as its memory is concerned.
struct LocalPlan {
  const SolverFile& file;  // its nets inline
  std::vector<Schedule> stages;
  ComputeOptions compute;         // of all of them
  std::vector<int> gpus = {};     // that workers take in turn; empty: as `compute` says
  std::optional<int> master_gpu;  // none: it computes on the CPU
  std::uint64_t workers = 1;
  LocalStore store = {};
};

// The GPU of each worker; none: they compute on the CPU.
std::vector<int> gpus_of_workers(const LocalPlan& plan);

// What all decide by who ask whether it has room. The solver must outlive what is returned.
ClusterPlan cluster_plan(const LocalPlan& plan);

}  // namespace speedo
