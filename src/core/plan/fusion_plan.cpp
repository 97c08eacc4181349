#include "core/plan/fusion_plan.hpp"

#include <speedo/base/assert.hpp>

namespace speedo {
namespace {

// Whether one backward pass can stand for both nodes'; of `b` that to its bottom `bottom`.
bool run_backward_alike(const GraphNode& a, const GraphNode& b, std::size_t bottom) {
  return a.needs_backward == b.needs_backward && a.propagate[0] == a.needs_backward &&
         b.propagate[bottom] == b.needs_backward;
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
  FusionTerms terms_for(std::size_t node, std::size_t next, std::size_t bottom) const;
  bool can_join(std::size_t node, std::size_t next, std::size_t blob) const;
  std::size_t reader_behind(std::size_t node, std::size_t blob) const;

  const std::vector<GraphNode>& nodes_;
  const std::vector<bool>& keeps_bottom_;
  bool trains_;
  const FusionOffer& offer_;
  FusionPlan plan_;
};

FusionTerms FusionPlanner::terms_for(std::size_t node, std::size_t next,
                                     std::size_t bottom) const {
  const bool runs_backward = trains_ && nodes_[next].needs_backward;
  return {.forward_alone = !runs_backward || !keeps_bottom_[next],
          .with_backward = !trains_ || run_backward_alike(nodes_[node], nodes_[next], bottom),
          .joins = nodes_[next].bottoms.size() > 1};
}

// Whether `next` reads the blob and another one that is there before the node, and nothing stands
// against making its top there.
bool FusionPlanner::can_join(std::size_t node, std::size_t next, std::size_t blob) const {
  const GraphNode& it = nodes_[next];
  if (it.bottoms.size() != 2 || it.tops.size() != 1 || it.shapes_vary) return false;
  if (nodes_[node].bottoms.size() != 1) return false;
  const std::size_t other = it.bottoms[it.bottoms[0] == blob ? 1 : 0];
  if (other == blob || it.reads(it.tops[0])) return false;
  for (std::size_t between = node + 1; between < next; ++between) {
    if (nodes_[between].makes(other)) return false;
  }
  return reader_behind(next, blob) == nodes_.size();
}

std::size_t FusionPlanner::reader_behind(std::size_t node, std::size_t blob) const {
  do ++node;
  while (node < nodes_.size() && !nodes_[node].reads(blob));
  return node;
}

void FusionPlanner::fuse_into(std::size_t node) {
  std::size_t blob = nodes_[node].tops[0];
  std::size_t next = node;
  while ((next = reader_behind(next, blob)) < nodes_.size()) {
    const GraphNode& it = nodes_[next];
    // A loss weight asks for the values between two layers.
    const bool is_asked_for = nodes_[node].loss_weights[0] != 0.0F;
    const std::vector<std::size_t> in_place{blob};
    const bool is_in_place = it.bottoms == in_place && it.tops == in_place;
    const bool joins = !is_in_place && can_join(node, next, blob);
    if (is_asked_for || (!is_in_place && !joins)) return;
    const std::size_t bottom = it.bottoms[0] == blob ? 0 : 1;
    const Fused fused = offer_(node, next, terms_for(node, next, bottom));
    SPEEDO_ASSERT(fused.forward || !fused.backward);
    SPEEDO_ASSERT(fused.backward || !joins || !fused.forward);
    if (!fused.forward) return;
    plan_.fused[next] = fused;
    plan_.taken_over[node].push_back(next);
    if (joins) {
      plan_.joints.push_back({node, next, it.bottoms[1 - bottom]});
      blob = it.tops[0];
    }
    if (it.loss_weights[0] != 0.0F) return;
  }
}

}  // namespace

FusionPlan plan_fusion(const NetGraph& graph, const std::vector<bool>& keeps_bottom, bool trains,
                       const FusionOffer& offer) {
  SPEEDO_ASSERT(keeps_bottom.size() == graph.nodes.size());
  return FusionPlanner(graph, keeps_bottom, trains, offer).run();
}

void apply_fusion(const FusionPlan& plan, NetGraph& graph) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) graph.nodes[i].fused = plan.fused[i];
  for (const Joint& joint : plan.joints) {
    const GraphNode joining = graph.nodes[joint.joining];
    const std::size_t other = joining.bottoms[0] == joint.other ? 0 : 1;
    GraphNode& node = graph.nodes[joint.node];
    node.bottoms.push_back(joint.other);
    node.propagate.push_back(joining.propagate[other]);
    node.tops = joining.tops;
    graph.nodes[joint.joining].propagate = {joining.propagate[1 - other]};
    for (const std::size_t taken : plan.taken_over[joint.node]) {
      graph.nodes[taken].bottoms = graph.nodes[taken].tops = joining.tops;
    }
  }
}

}  // namespace speedo
