#pragma once

#include <span>
#include <vector>

#include "core/plan/graph.hpp"
#include "core/plan/layout_plan.hpp"

namespace speedo {

// The layout that a blob of this shape has in a net that prefers `kind`; plain if it has no
// channels.
Layout native_layout(LayoutKind kind, const Shape& shape);

// Which nodes' tops get native layouts and whose are plain, so that each blob has one layout for
// all nodes that write it, every LayoutRule holds, and as little as possible must be reordered
// where nodes read. Nodes with a loss or with shapes that vary get no choice: they are plain.
std::vector<bool> choose_native_nodes(LayoutKind kind, const NetGraph& graph,
                                      std::span<const LayoutTraits> traits);

}  // namespace speedo
