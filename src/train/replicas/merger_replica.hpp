#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/factor_shape.hpp>
#include <speedo/core/parameter_arena.hpp>
#include <speedo/store/record_store.hpp>
#include <speedo/train/merge_job.hpp>

#include "train/merge/chunk_merge.hpp"
#include "train/merge/merger_rule.hpp"
#include "train/replicas/packed_gradient.hpp"
#include "train/replicas/step_gradient.hpp"
#include "train/replicas/step_header.hpp"
#include "train/replicas/step_layout.hpp"
#include "train/replicas/step_parts.hpp"

namespace speedo {

// A master's part of replicated updates: merges that give steps, and its own weights, which follow
// once workers have been told of a step. Thread safety: one thread at a time.
class MergerReplica {
 public:
  // The layout and the backend outlive it.
  // `parts`: in which steps are made; with several, elsewhere.
  MergerReplica(const ParameterLayout& layout, std::span<const FactorShape> factors,
                std::size_t parts, Backend& backend);

  // Floats of a contribution.
  std::size_t contribution_count() const { return contribution_.count(); }

  // A merge into the step that `info` describes but for its length. Requires: nothing is pending.
  std::unique_ptr<ChunkMerge> begin(const MergeJob& job, std::size_t contributions,
                                    RecordStore& store, RecordInfo info);
  // Room for a step of this header that is merged elsewhere. Requires: the same.
  StepParts::StepRoom room(const StepHeader& header);
  // The merge begun last was finished, or the room last given is filled: that step is the next one
  // to be applied.
  void merged();
  bool is_pending() const { return pending_; }
  // Applies it: the rule's next weights go to `next`. Error: kNotFinite, and the histories are as
  // before; the step stays pending.
  Result<void> apply(MergerRule& rule, std::span<const float> weights, std::span<float> next);

 private:
  const ParameterLayout& layout_;
  const PackedGradient contribution_;
  Backend& backend_;
  StepGradient gradient_;
  // Of the merge begun last.
  std::optional<StepLayout> step_;
  StepHeader header_;
  std::vector<float> values_;
  bool pending_ = false;
};

}  // namespace speedo
