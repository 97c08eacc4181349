#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <speedo/store/record_store.hpp>

#include "train/merge/chunk_merge.hpp"
#include "train/replicas/step_layout.hpp"

namespace speedo {

// Contributions of a round become a step, or one part of it: the mean of their values, and all
// their factors. Chunks of the step go to the writer as they are whole. Chunks are counted within
// the part, those of the contributions and those of the step; a merge of the whole is that of part
// 0 of 1.
struct StepFrame {
  const StepLayout& step;       // of as many contributions as take part
  std::size_t part = 0;
  std::string state;            // of the step's record
  std::span<float> values;      // of the part; stay as they are until the merge is destroyed
  std::unique_ptr<RecordWriter> writer;
};

// What the frame refers to outlives the merge, which changes nothing but `values` and the store.
std::unique_ptr<ChunkMerge> merge_step(StepFrame frame);

}  // namespace speedo
