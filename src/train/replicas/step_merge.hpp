#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <speedo/store/record_store.hpp>

#include "train/merge/chunk_merge.hpp"
#include "train/replicas/packed_gradient.hpp"
#include "train/replicas/step_header.hpp"

namespace speedo {

// Contributions of a round become a step: the mean of their values, and all their factors one
// behind the other. Chunks of the step go to the store as they are whole.
struct StepFrame {
  const PackedGradient& contribution;
  const PackedGradient& step;   // of as many contributions as take part
  StepHeader header;
  std::span<float> values;      // of the step; stay as they are until the merge is destroyed
  RecordStore& store;
  RecordInfo info;              // of the step, without its header
};

// All of the frame outlives the merge, which changes nothing but `values` and the store.
std::unique_ptr<ChunkMerge> merge_step(StepFrame frame);

}  // namespace speedo
