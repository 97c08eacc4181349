#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/store/record_store.hpp>

#include "train/merge/chunk_merge.hpp"
#include "train/merge/merger_pool.hpp"

namespace speedo {

// One way through chunks of several contributions: one is merged while the next is read and the one
// before goes to the store. Keeps its buffers between passes.
// Thread safety: one thread at a time.
class MergerPass {
 public:
  explicit MergerPass(int threads);

  struct Task {
    std::uint64_t element_count;           // of each record
    std::span<const std::size_t> chunks;   // in this order, each once
    std::span<ChunkSource* const> sources;  // none of the chunks was requested from them
  };
  // Calls merge.merge() on the pool's threads, for several chunks at once, and merge.put() in the
  // chunks' order on the caller's. Returns the contribution at fault (missing, corrupt, or by
  // `merge`), or none: all went well. Errors: transient ones. Unless all went well, the sources are
  // destroyed before the next pass.
  Result<ChunkMerge::Fault> run(const Task& task, ChunkMerge& merge);
  // Where in its contribution the last run's fault is: the first element that is not finite, or
  // none, of a contribution that is missing or corrupt.
  std::optional<std::uint64_t> fault_place() const { return fault_place_; }

 private:
  // A place for one chunk of each contribution, and where it lies: there, or where its writer has
  // it.
  struct Slot {
    std::vector<std::span<float>> memory;
    std::vector<std::span<const float>> parts;
    ChunkMerge::Fault fault;
    std::atomic<bool> done{false};
  };
  class Run;
  void prepare(std::size_t contributions, std::uint64_t element_count);

  std::vector<float> memory_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::size_t slot_count_ = 0;  // of slots_, those in use
  std::optional<std::uint64_t> fault_place_;
  MergerPool helpers_;
  MergerPool inline_;  // short records are merged where they arrive: waking a thread takes longer
};

}  // namespace speedo
