#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/plan/graph.hpp"

namespace speedo {

// What the layout plan asks of a node's layer.
struct LayoutTraits {
  LayoutRule rule = LayoutRule::kPlain;
  bool takes_plain_bottom = false;  // though it is native: the first bottom may be plain
  std::vector<SharedTop> shared_tops = {};
};

// One layout for each blob, and Reorder nodes where a node reads it in another one: a Reorder node
// has one top for each reader, with values that they share. Returns the graph with these, and with
// who shares memory with whom. Requires: a graph with its in-place plan, whose blobs have shapes.
NetGraph plan_layouts(LayoutKind kind, const NetGraph& graph, std::span<const LayoutTraits> traits);

}  // namespace speedo
