#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "core/plan/graph.hpp"

namespace speedo {

// Lets a node's layer say what it will do for the layer of the node `next`; see Layer::fuse().
using FusionOffer =
    std::function<Fused(std::size_t node, std::size_t next, const FusionTerms& terms)>;

// A node that does the work of `joining`, which reads what it makes and the blob `other`.
struct Joint {
  std::size_t node, joining, other;
};

// Who does whose work.
struct FusionPlan {
  std::vector<Fused> fused;                          // per node: passes that another one does
  std::vector<std::vector<std::size_t>> taken_over;  // per node: the others, in order
  std::vector<Joint> joints;
};

// Offers nodes with one top those that follow in place, one after another, until one is refused or
// somebody asks for the values between two; among these one that reads another blob, too, and has a
// top of its own, where that blob is there before. `keeps_bottom`, per node: Layer::keeps_bottom().
// Requires: a graph with its backward plan and shape plan.
FusionPlan plan_fusion(const NetGraph& graph, const std::vector<bool>& keeps_bottom, bool trains,
                       const FusionOffer& offer);

// Notes in a graph who does whose work. A node with a joint reads the other blob as its last bottom
// and writes the joining node's top, which all nodes whose work it does are in place on.
void apply_fusion(const FusionPlan& plan, NetGraph& graph);

}  // namespace speedo
