#include "measure/store_need.hpp"

#include <algorithm>

#include <speedo/base/limits.hpp>
#include <speedo/core/update_rule.hpp>
#include <speedo/store/layout.hpp>

#include "caffe.pb.h"
#include "train/job/job_solver.hpp"
#include "train/states/saved_states.hpp"

namespace speedo {

namespace {

// What a client has on its way at a time, by measurement: chunks that were asked for and wait to be
// read, and one that is being put.
constexpr auto kRepliesMax = static_cast<std::int64_t>(3 * kChunkBytes);
constexpr auto kPutBytes = static_cast<std::int64_t>(kChunkBytes);

// Arrays of the weights' size. A slot that was used once keeps its copy.
struct StoredArrays {
  std::int64_t of_master = 0, of_worker = 0;
};

Result<StoredArrays> arrays_of(const StoredJob& job, std::size_t number,
                               const caffe::SolverParameter& solver) {
  const UpdateSpec& stage = job.stages[number];
  SPEEDO_ASSIGN(const std::size_t count, UpdateRule::history_count(solver_of(solver, stage)));
  const auto histories = static_cast<std::int64_t>(count);
  const std::int64_t record = 1 + (averages_histories(stage) ? histories : 0);
  const std::int64_t whole = 1 + histories;
  const bool in_memory = job.shares_memory && !stage.replicated;
  StoredArrays arrays{kRecordSlots * record, in_memory ? 0 : kContributionSlots * record};
  if (stage.replicated) {
    // Weights with histories, the first of them a checkpoint, and the steps between.
    arrays.of_master = kRecordSlots * whole + whole + kRecordSlots;
  } else if (stage.kind == UpdateKind::kGradientOnly && histories > 0) {
    arrays.of_master += kRecordSlots * whole;
  }
  // Of steps there are none.
  if (job.part_copies && !stage.replicated) arrays.of_master *= 2;
  // The worker's own weights, which the master writes back.
  if (stage.kind == UpdateKind::kElasticMaster) arrays.of_worker += kContributionSlots;
  if (job.worker_states) {
    SPEEDO_ASSIGN(const std::uint64_t states, arrays_in_stage(job.stages, number, solver));
    arrays.of_worker += static_cast<std::int64_t>(states);
  }
  return arrays;
}

}  // namespace

std::int64_t redis_bytes(std::int64_t values) {
  // By measurement with Redis 7 and jemalloc: 1 MiB and a head take 1.27 MiB of memory, since the
  // allocator's sizes go up in steps of a quarter; other lengths take less.
  constexpr double kOverhead = 1.3;
  return static_cast<std::int64_t>(static_cast<double>(values) * kOverhead);
}

Result<StoreNeed> store_need(const StoredJob& job, const caffe::SolverParameter& solver) {
  StoreNeed need;
  for (std::size_t number = 0; number < job.stages.size(); ++number) {
    SPEEDO_ASSIGN(const StoredArrays arrays, arrays_of(job, number, solver));
    const std::int64_t least = arrays.of_master * job.weight_bytes;
    const auto workers = static_cast<std::int64_t>(job.workers);
    need.least = std::max(need.least, least);
    need.all = std::max(need.all, least + workers * arrays.of_worker * job.weight_bytes);
    const std::int64_t of_client = std::min(job.weight_bytes, kRepliesMax) + kPutBytes;
    need.on_its_way = (1 + workers) * of_client;  // the master is one more
  }
  return need;
}

}  // namespace speedo
