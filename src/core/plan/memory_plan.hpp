#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/graph.hpp"

namespace speedo {

// What the memory plan asks of a node's layer: the Layer's answers of these names. Those on passes
// that do not run may be left out.
struct MemoryTraits {
  bool keeps_tops = false;
  std::vector<bool> backward_reads_bottom = {};             // per bottom
  std::vector<bool> backward_reads_top = {};                // per top
  std::vector<std::vector<bool>> values_may_share = {};     // per bottom and top
  std::vector<std::vector<bool>> gradients_may_share = {};  // per bottom and top
};

// Who looks at blobs between the passes.
struct BlobsToKeep {
  std::vector<std::size_t> after_forward;  // their values, from when they are written
  std::vector<std::size_t> always;         // their values, and gradients of those that need them
};

// Places in one memory, in floats.
struct MemoryPlan {
  struct Place {
    std::size_t blob;  // of those that share the place, the largest
    bool is_grad;
    std::int64_t offset;
  };

  std::vector<Place> places;
  std::int64_t floats = 0;           // of all
  std::int64_t unshared_floats = 0;  // what they would take, each in memory of its own
};

// Memory for blobs: as much as is alive at once. It must hold zeros before the first pass.
// Requires: a graph with its layout plan.
MemoryPlan plan_memory(const NetGraph& graph, std::span<const MemoryTraits> traits, bool trains,
                       const BlobsToKeep& kept);

}  // namespace speedo
