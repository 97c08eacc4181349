#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/parameter_arena.hpp>
#include <speedo/store/record_store.hpp>
#include <speedo/train/merge_job.hpp>
#include <speedo/train/update.hpp>

#include "train/merge/merger_rule.hpp"

namespace speedo {

// What one kind of update makes of the contributions to one merge, chunk by chunk, in any order of
// the chunks. Chunks of the result go to the store as they are made; nothing of it is visible, and
// nothing of the master has changed, before finish(). Destroyed without that, it leaves no trace.
// Thread safety: merge() of several chunks at once, everything else one thread.
class ChunkMerge {
 public:
  using Parts = std::span<const std::span<const float>>;
  using Fault = std::optional<std::size_t>;  // the contribution at fault

  // What every kind works with; all that it refers to outlives the merge.
  struct Frame {
    const UpdateSpec& spec;
    const MergeJob& job;
    // Those of the job that take part.
    std::span<const MergeJob::Contribution> contributions;
    const ParameterLayout& layout;
    std::span<const float> record;  // as published
    std::span<float> next;          // becomes the record
    RecordStore& store;
    RecordInfo info;                // of the next record, without the session's state
  };

  virtual ~ChunkMerge() = default;
  // `parts`: the chunk of each contribution. What comes of it does not count before put().
  virtual Fault merge(std::size_t chunk, Parts parts) = 0;
  // After merge() of it.
  virtual void put(std::size_t chunk) = 0;
  // The merge was ordered, at its begin or in the middle: from here on records of its workers may
  // be written, too, which are not erased before it ends. Once.
  virtual void ordered() {}
  // All chunks were put, and the merge was ordered. Makes the record visible, with this state; the
  // frame's `next` is whole.
  // Errors: those of the store, kNotFinite if finite contributions make weights that are not.
  virtual Result<void> finish(std::string state) = 0;
};

// Full deltas: their sum or mean, by the factor. Elastic differences: their sum.
std::unique_ptr<ChunkMerge> merge_deltas(const ChunkMerge::Frame& frame);

// SpeeDO's form of elastic averaging: each worker's difference to the same weights; what is left of
// its own weights goes back to it before the manifest of the new weights, so that a worker whose
// contribution is said to be merged finds it. `locals`: room that is kept from merge to merge.
std::unique_ptr<ChunkMerge> merge_locals(const ChunkMerge::Frame& frame,
                                         std::vector<std::vector<float>>& locals);

// Gradients: their sum or mean goes through the rule.
std::unique_ptr<ChunkMerge> merge_gradients(const ChunkMerge::Frame& frame, MergerRule& rule);

}  // namespace speedo
