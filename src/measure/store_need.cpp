#include "measure/store_need.hpp"

#include <algorithm>

#include <speedo/core/update_rule.hpp>

#include "caffe.pb.h"
#include "train/job/job_solver.hpp"
#include "train/states/saved_states.hpp"

namespace speedo {

namespace {

// While one replaces the other.
constexpr std::int64_t kVersions = 2;

// Arrays of the weights' size.
struct StoredArrays {
  std::int64_t of_master = 0, of_worker = 0;
};

Result<StoredArrays> arrays_of(const StoredJob& job, std::size_t number,
                               const caffe::SolverParameter& solver) {
  const UpdateSpec& stage = job.stages[number];
  SPEEDO_ASSIGN(const std::size_t count, UpdateRule::history_count(solver_of(solver, stage)));
  const auto histories = static_cast<std::int64_t>(count);
  const std::int64_t record = 1 + (averages_histories(stage) ? histories : 0);
  StoredArrays arrays{kVersions * record, record};
  // The checkpoint of the rule, and of replicas the steps between versions of the weights.
  if (stage.kind == UpdateKind::kGradientOnly) arrays.of_master += kVersions * histories;
  if (stage.replicated) arrays.of_master += kVersions;
  if (job.part_copies) arrays.of_master *= 2;
  // The worker's own weights, which the master writes back.
  if (stage.kind == UpdateKind::kElasticMaster) arrays.of_worker += 1;
  if (job.worker_states) {
    SPEEDO_ASSIGN(const std::uint64_t states, arrays_in_stage(job.stages, number, solver));
    arrays.of_worker += static_cast<std::int64_t>(states);
  }
  return arrays;
}

}  // namespace

Result<StoreNeed> store_need(const StoredJob& job, const caffe::SolverParameter& solver) {
  StoreNeed need;
  for (std::size_t number = 0; number < job.stages.size(); ++number) {
    SPEEDO_ASSIGN(const StoredArrays arrays, arrays_of(job, number, solver));
    const std::int64_t least = arrays.of_master * job.weight_bytes;
    const auto workers = static_cast<std::int64_t>(job.workers);
    need.least = std::max(need.least, least);
    need.all = std::max(need.all, least + workers * arrays.of_worker * job.weight_bytes);
  }
  return need;
}

}  // namespace speedo
