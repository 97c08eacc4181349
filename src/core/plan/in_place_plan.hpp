#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/plan/graph.hpp"

namespace speedo {

// What the in-place plan asks of a node's layer.
struct InPlaceTraits {
  bool keeps_bottom = false, keeps_top = false, keeps_tops = false;  // as the Layer says
  std::vector<SharedTop> shared_tops = {};
};

// A node that writes the new blob `after` where it wrote `before` in place.
struct OwnTop {
  std::size_t node, before, after;
};

struct InPlacePlan {
  NetGraph graph;  // where those that read the values afterwards read the new blobs
  std::vector<OwnTop> own_tops;
};

// Gives in-place nodes a top of their own where a backward pass needs what they would overwrite,
// their own or that of the node that made it. Requires: a graph with its fusion plan, of a net that
// trains.
InPlacePlan plan_in_place(NetGraph graph, std::span<const InPlaceTraits> traits);

}  // namespace speedo
