#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <speedo/train/merge_job.hpp>

#include "train/merge/merge_ahead.hpp"
#include "train/merge/merger_party.hpp"
#include "train/merge/merger_pass.hpp"
#include "train/parts/clipped_store.hpp"
#include "train/parts/part_orders.hpp"
#include "train/parts/part_setup.hpp"
#include "train/replicas/packed_gradient.hpp"
#include "train/replicas/step_layout.hpp"

namespace speedo {

// Makes one part of the steps of replicated updates. Remembers nothing from one to the next, and
// writes each to the slot of its version: a merger that was thought to be gone may write to it as
// well, and what no manifest names by its checksum does not count.
// Thread safety: one thread at a time.
class StepPart {
 public:
  // `setup` outlives it. `update`: of the stage, which is replicated.
  StepPart(const PartSetup& setup, const UpdateSpec& update);

  // Written, Rejected or Failed.
  PartAnswer merge(const part_order::Merge& order);
  void expect(const part_order::Expect& order);
  bool expects() const { return expected_.has_value(); }
  // Merges what is there of the expected merge, and a little at a time; false if nothing is.
  bool merge_ahead();

 private:
  class Writer;
  Result<PartAnswer> try_merge(const part_order::Merge& order);
  std::unique_ptr<ChunkMerge> begin(std::size_t contributions, std::uint64_t version);
  void forget_expected();

  const PartSetup& setup_;
  const PackedGradient contribution_;
  const std::uint64_t count_;  // floats of the contributions' part
  ClippedStore store_;
  MergerPass pass_;
  std::optional<StepLayout> step_;
  std::vector<float> values_;           // of the part of the step that is being made
  std::optional<WrittenPart> written_;  // what has come of it
  std::optional<part_order::Expect> expected_;
  std::unique_ptr<MergeAhead> ahead_;   // of it; uses what is above
};

}  // namespace speedo
