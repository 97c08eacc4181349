#include "core/plan/fusion_plan.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>

namespace speedo {
namespace {

// Whether one backward pass can stand for both nodes'.
bool run_backward_alike(const GraphNode& a, const GraphNode& b) {
  return a.needs_backward == b.needs_backward && a.propagate[0] == a.needs_backward &&
         b.propagate[0] == b.needs_backward;
}

class FusionPlanner {
 public:
  FusionPlanner(const NetGraph& graph, const std::vector<bool>& keeps_bottom, bool trains,
                const FusionOffer& offer)
      : nodes_(graph.nodes), keeps_bottom_(keeps_bottom), trains_(trains), offer_(offer) {
    plan_.fused.resize(nodes_.size());
    plan_.taken_over.resize(nodes_.size());
  }

  FusionPlan run() {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      const bool has_one_top = nodes_[node].tops.size() == 1 && !nodes_[node].bottoms.empty();
      if (has_one_top && !plan_.fused[node].forward && !nodes_[node].shapes_vary) fuse_into(node);
    }
    return plan_;
  }

 private:
  void fuse_into(std::size_t node);
  FusionTerms terms_for(std::size_t node, std::size_t next) const;

  const std::vector<GraphNode>& nodes_;
  const std::vector<bool>& keeps_bottom_;
  bool trains_;
  const FusionOffer& offer_;
  FusionPlan plan_;
};

FusionTerms FusionPlanner::terms_for(std::size_t node, std::size_t next) const {
  const bool runs_backward = trains_ && nodes_[next].needs_backward;
  return {.forward_alone = !runs_backward || !keeps_bottom_[next],
          .with_backward = !trains_ || run_backward_alike(nodes_[node], nodes_[next])};
}

void FusionPlanner::fuse_into(std::size_t node) {
  const std::size_t blob = nodes_[node].tops[0];
  const std::vector<std::size_t> in_place{blob};
  for (std::size_t next = node + 1; next < nodes_.size(); ++next) {
    const std::vector<std::size_t>& bottoms = nodes_[next].bottoms;
    if (std::find(bottoms.begin(), bottoms.end(), blob) == bottoms.end()) continue;
    // A loss weight asks for the values between two layers.
    const bool is_asked_for = nodes_[node].loss_weights[0] != 0.0F;
    if (is_asked_for || bottoms != in_place || nodes_[next].tops != in_place) return;
    const Fused fused = offer_(node, next, terms_for(node, next));
    SPEEDO_ASSERT(fused.forward || !fused.backward);
    if (!fused.forward) return;
    plan_.fused[next] = fused;
    plan_.taken_over[node].push_back(next);
    if (nodes_[next].loss_weights[0] != 0.0F) return;
  }
}

}  // namespace

FusionPlan plan_fusion(const NetGraph& graph, const std::vector<bool>& keeps_bottom, bool trains,
                       const FusionOffer& offer) {
  SPEEDO_ASSERT(keeps_bottom.size() == graph.nodes.size());
  return FusionPlanner(graph, keeps_bottom, trains, offer).run();
}

}  // namespace speedo
