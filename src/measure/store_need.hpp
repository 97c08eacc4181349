#pragma once

#include <cstdint>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/train/update.hpp>

namespace caffe {
class SolverParameter;
}  // namespace caffe

namespace speedo {

// What decides how much a job keeps in its store.
struct StoredJob {
  std::vector<UpdateSpec> stages;
  std::int64_t weight_bytes = 0;
  std::uint64_t workers = 0;
  bool part_copies = false;    // each part of the weights lies on the next server as well
  bool worker_states = false;  // --snapshot-workers
  // All workers contribute in memory that they share with the master, but as replicas.
  bool shares_memory = false;
};

// Bytes of values on all its servers together, in the stage that keeps most: all copies that
// store/layout.hpp has of each record.
struct StoreNeed {
  std::int64_t least = 0;  // the weights, and the rule's histories
  std::int64_t all = 0;    // with contributions of each worker, not coded, and what else it leaves
  std::int64_t on_its_way = 0;  // besides, in the buffers of each server
};

// What values of so many bytes take of a Redis server's memory, whose allocator rounds up.
std::int64_t redis_bytes(std::int64_t values);

// Errors: those of UpdateRule::history_count().
Result<StoreNeed> store_need(const StoredJob& job, const caffe::SolverParameter& solver);

}  // namespace speedo
