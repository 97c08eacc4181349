#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/store/record_store.hpp>
#include <speedo/train/merge_job.hpp>

#include "train/merge/chunk_merge.hpp"
#include "train/merge/merger_pass.hpp"

namespace speedo {

// A merge that is expected, begun while its contributions are still being written: chunks that all
// of them have are merged. Whether that counts is known once their manifests are there.
// Thread safety: one thread.
class MergeAhead {
 public:
  // `term`: of the workers' contributions, of `element_count` floats each.
  MergeAhead(RecordStore& store, std::unique_ptr<ChunkMerge> merge, const MergeJob& job,
             std::uint64_t term, std::uint64_t element_count);

  // Merges a few chunks that are there; false if none is. Errors: the merge has to be begun anew
  // when its contributions are finished.
  Result<bool> advance(MergerPass& pass);

  // Whether what was merged is what `job` asks for, given the manifests of its contributions.
  bool fits(const MergeJob& job, std::span<const std::unique_ptr<RecordReader>> readers) const;
  // The chunks that are not merged yet, and the merge. Afterwards this is used up.
  std::vector<std::size_t> lacking() const { return left_; }
  std::unique_ptr<ChunkMerge> take() { return std::move(merge_); }

 private:
  // A contribution that is being written. A chunk that was there once is not asked for again: that
  // it still is shows when it is read.
  struct Coming {
    std::unique_ptr<AheadReader> reader;
    std::vector<bool> is_there;  // by chunk
  };
  // Chunks by contribution.
  using Chunks = std::vector<std::vector<std::size_t>>;

  std::vector<std::size_t> find_ready();
  void look(const Chunks& wanted);

  const MergeJob job_;  // without its id and state
  const std::uint64_t element_count_;
  std::vector<Coming> coming_;
  std::vector<std::size_t> left_;    // in the order in which they are awaited
  std::vector<std::size_t> merged_;
  std::unique_ptr<ChunkMerge> merge_;
};

}  // namespace speedo
