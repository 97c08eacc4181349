#include "core/plan/in_place_plan.hpp"

#include <algorithm>
#include <optional>
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
  std::optional<std::size_t> bottom_in_top(std::size_t node, std::size_t top) const;
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

// Whether a node that made this one's bottom needs it as it made it: the last, or one whose values
// the last gave another name.
bool InPlacePlanner::is_kept_top(std::size_t node) const {
  std::size_t blob = nodes()[node].bottoms[0];
  for (std::size_t i = node; i-- > 0;) {
    if (!nodes()[i].makes(blob)) continue;
    if (nodes()[i].needs_backward && traits_[i].keeps_top) return true;
    const std::optional<std::size_t> bottom = bottom_in_top(i, blob);
    if (!bottom) return false;
    blob = *bottom;
  }
  return false;
}

// The bottom of the node whose values lie in the memory of this top, if one's do.
std::optional<std::size_t> InPlacePlanner::bottom_in_top(std::size_t node, std::size_t top) const {
  for (const SharedTop& shared : traits_[node].shared_tops) {
    if (nodes()[node].tops[shared.top] == top) return nodes()[node].bottoms[shared.bottom];
  }
  return std::nullopt;
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
