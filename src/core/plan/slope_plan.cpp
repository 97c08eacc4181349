#include "core/plan/slope_plan.hpp"

namespace speedo {
namespace {

bool hands_gradient_on(const GraphNode& node) {
  return node.needs_backward && !node.fused.backward && !node.shapes_vary &&
         node.bottoms.size() == 1 && node.propagate[0];
}

// A loss weight adds to the gradient between the two.
bool may_be_left_out(const GraphNode& node) {
  return hands_gradient_on(node) && node.tops == node.bottoms && !node.has_loss();
}

}  // namespace

std::vector<std::size_t> plan_slopes(const NetGraph& graph, const SlopeOffer& offer) {
  std::vector<std::size_t> left_out;
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    const GraphNode& it = graph.nodes[node];
    if (!hands_gradient_on(it) || it.makes(it.bottoms[0])) continue;
    for (std::size_t before = node; before-- > 0;) {
      const GraphNode& last = graph.nodes[before];
      if (!last.reads(it.bottoms[0]) && !last.makes(it.bottoms[0])) continue;
      if (may_be_left_out(last) && offer(node, before)) left_out.push_back(before);
      break;
    }
  }
  return left_out;
}

}  // namespace speedo
