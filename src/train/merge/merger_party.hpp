#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/digest.hpp>
#include <speedo/base/result.hpp>
#include <speedo/store/record_store.hpp>
#include <speedo/train/merge_job.hpp>
#include <speedo/train/merger.hpp>

#include "train/merge/chunk_merge.hpp"
#include "train/merge/merge_ahead.hpp"
#include "train/merge/merger_pass.hpp"

namespace speedo {

// What contributions to a merge must be.
struct PartyTerms {
  std::uint64_t term = 0;  // of the master that they are for
  Digest model;
  std::uint64_t element_count = 0;
};

// Contributions that take part in a merge, each with its reader.
struct MergeParty {
  std::vector<MergeJob::Contribution> contributions;
  std::vector<std::unique_ptr<RecordReader>> readers;
  std::vector<ChunkSource*> sources() const;
};

// Those that are there and what they must be; the others are rejected, and the log says why.
// Errors: transient ones of the store.
Result<MergeParty> open_party(RecordStore& store, const PartyTerms& terms,
                              std::span<const MergeJob::Contribution> contributions,
                              std::vector<WorkerId>& rejected);

// One of a party is at fault: it is not finite there, or without a place missing or damaged.
void reject(WorkerId worker, const std::optional<std::string>& not_finite_in, MergeResult& result);

// Of a merge that is put off: the others are looked at again.
void name_lost_alone(MergeResult& result);

// A merge, and which chunks it still lacks.
struct MergeCourse {
  std::unique_ptr<ChunkMerge> merge;
  std::vector<std::size_t> chunks;
};
MergeCourse whole_course(std::unique_ptr<ChunkMerge> merge, std::uint64_t element_count);
MergeCourse course_of(MergeAhead& ahead);

// The course to its end: what has come of it is visible, with this state. Errors: those of
// MergerPass::run() and ChunkMerge::finish().
Result<ChunkMerge::Fault> end_course(const MergeCourse& course, const MergeParty& party,
                                     std::uint64_t element_count, MergerPass& pass,
                                     const std::string& state);

}  // namespace speedo
