#include "core/plan/in_place_plan.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo {
namespace {

class InPlacePlanner {
 public:
  InPlacePlanner(NetGraph graph, std::span<const InPlaceTraits> traits) : traits_(traits) {
    plan_.graph = std::move(graph);
  }

  InPlacePlan run() {
    for (std::size_t node = 0; node < nodes().size(); ++node) {
      if (spares_bottom(node) && !is_written_from_outside(nodes()[node].tops[0])) {
        give_own_top(node);
      }
    }
    return std::move(plan_);
  }

 private:
  std::vector<GraphNode>& nodes() { return plan_.graph.nodes; }
  const std::vector<GraphNode>& nodes() const { return plan_.graph.nodes; }
  bool spares_bottom(std::size_t node) const;
  bool is_kept_top(std::size_t node) const;
  bool is_written_from_outside(std::size_t blob) const;
  void give_own_top(std::size_t node);

  std::span<const InPlaceTraits> traits_;
  InPlacePlan plan_;
};

bool InPlacePlanner::spares_bottom(std::size_t node) const {
  const GraphNode& it = nodes()[node];
  const bool is_in_place =
      !it.bottoms.empty() && !it.tops.empty() && it.bottoms[0] == it.tops[0];
  const bool is_run = !it.fused.forward || !it.fused.backward;
  if (!is_in_place || !is_run) return false;
  return (it.needs_backward && traits_[node].keeps_bottom) || is_kept_top(node);
}

// Whether the node that made this one's bottom needs it as it made it.
bool InPlacePlanner::is_kept_top(std::size_t node) const {
  for (std::size_t i = node; i-- > 0;) {
    if (nodes()[i].makes(nodes()[node].bottoms[0])) {
      return nodes()[i].needs_backward && traits_[i].keeps_top;
    }
  }
  return false;
}

// An input's blob must stay where its owner finds it by name.
bool InPlacePlanner::is_written_from_outside(std::size_t blob) const {
  for (std::size_t i = 0; i < nodes().size(); ++i) {
    if (nodes()[i].makes(blob)) return traits_[i].keeps_tops;
  }
  return false;
}

// The blob's values so far stay where they are; what the node and those behind it write and read is
// another blob.
void InPlacePlanner::give_own_top(std::size_t node) {
  const std::size_t before = nodes()[node].tops[0];
  const std::size_t after = plan_.graph.add_blob(plan_.graph.blobs[before]);
  std::vector<std::size_t>& own = nodes()[node].tops;
  std::replace(own.begin(), own.end(), before, after);
  for (std::size_t later = node + 1; later < nodes().size(); ++later) {
    GraphNode& it = nodes()[later];
    std::replace(it.bottoms.begin(), it.bottoms.end(), before, after);
    std::replace(it.tops.begin(), it.tops.end(), before, after);
  }
  plan_.own_tops.push_back({node, before, after});
}

}  // namespace

InPlacePlan plan_in_place(NetGraph graph, std::span<const InPlaceTraits> traits) {
  SPEEDO_ASSERT(traits.size() == graph.nodes.size());
  return InPlacePlanner(std::move(graph), traits).run();
}

}  // namespace speedo
