#include "core/plan/backward_plan.hpp"

#include <speedo/base/assert.hpp>

namespace speedo {
namespace {

// Forwards through the net: a node needs the backward pass if it or anything before it is trained.
BackwardPlan follow_parameters(const NetGraph& graph, std::span<const BackwardTraits> traits) {
  BackwardPlan plan;
  std::vector<bool> depends(graph.blobs.size());  // on a parameter that is trained
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    const std::vector<std::size_t>& bottoms = graph.nodes[node].bottoms;
    const std::vector<bool>& wished = traits[node].propagate_down;
    SPEEDO_ASSERT(wished.empty() || wished.size() == bottoms.size());
    bool needs_backward = false;
    std::vector<bool>& propagate = plan.propagate.emplace_back();
    for (std::size_t i = 0; i < bottoms.size(); ++i) {
      needs_backward = needs_backward || depends[bottoms[i]];
      propagate.push_back(wished.empty() ? depends[bottoms[i]] : wished[i]);
    }
    for (const bool trained : traits[node].trained) needs_backward = needs_backward || trained;
    plan.needs_backward.push_back(needs_backward);
    for (const std::size_t top : graph.nodes[node].tops) {
      depends[top] = depends[top] || needs_backward;
    }
  }
  return plan;
}

// Backwards through the net: what no loss depends on, and what propagate_down cuts off, needs
// nothing. The uses of one in-place chain count as one.
void prune_without_loss(const NetGraph& graph, BackwardPlan& plan) {
  std::vector<bool> under_loss(graph.blobs.size()), cut_off(graph.blobs.size());
  for (std::size_t node = graph.nodes.size(); node-- > 0;) {
    const GraphNode& it = graph.nodes[node];
    std::vector<bool>& propagate = plan.propagate[node];
    bool has_loss = false, is_cut_off = true;
    for (std::size_t i = 0; i < it.tops.size(); ++i) {
      has_loss = has_loss || it.loss_weights[i] != 0.0F || under_loss[it.tops[i]];
      is_cut_off = is_cut_off && cut_off[it.tops[i]];
    }
    if (plan.needs_backward[node] && is_cut_off) {
      plan.needs_backward[node] = false;
      propagate.assign(propagate.size(), false);
    }
    plan.needs_backward[node] = plan.needs_backward[node] && has_loss;
    for (std::size_t i = 0; i < propagate.size(); ++i) {
      if (has_loss) {
        under_loss[it.bottoms[i]] = true;
      } else {
        propagate[i] = false;
      }
      if (!propagate[i]) cut_off[it.bottoms[i]] = true;
    }
  }
}

void force_all(std::span<const BackwardTraits> traits, BackwardPlan& plan) {
  for (std::size_t node = 0; node < plan.propagate.size(); ++node) {
    plan.needs_backward[node] = true;
    std::vector<bool>& propagate = plan.propagate[node];
    for (std::size_t i = 0; i < propagate.size(); ++i) {
      const bool is_forced = traits[node].may_be_forced[i] && traits[node].can_propagate[i];
      propagate[i] = propagate[i] || is_forced;
    }
  }
}

void refuse_impossible(std::span<const BackwardTraits> traits, BackwardPlan& plan) {
  for (std::size_t node = 0; node < plan.propagate.size(); ++node) {
    std::vector<bool>& propagate = plan.propagate[node];
    for (std::size_t i = 0; i < propagate.size(); ++i) {
      const bool is_wanted = plan.needs_backward[node] && propagate[i];
      if (!is_wanted || traits[node].can_propagate[i]) continue;
      plan.refused.push_back({node, i});
      propagate[i] = false;
    }
  }
}

// Gradients are read at the tops of a node that runs backward, and written where it propagates.
void mark_gradients(const NetGraph& graph, BackwardPlan& plan) {
  plan.needs_grad.assign(graph.blobs.size(), false);
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    const GraphNode& it = graph.nodes[node];
    for (std::size_t i = 0; i < it.tops.size(); ++i) {
      if (plan.needs_backward[node] || it.loss_weights[i] != 0.0F) {
        plan.needs_grad[it.tops[i]] = true;
      }
    }
    for (std::size_t i = 0; i < it.bottoms.size(); ++i) {
      if (plan.needs_backward[node] && plan.propagate[node][i]) {
        plan.needs_grad[it.bottoms[i]] = true;
      }
    }
  }
}

}  // namespace

BackwardPlan plan_backward(const NetGraph& graph, std::span<const BackwardTraits> traits,
                           bool is_forced) {
  SPEEDO_ASSERT(traits.size() == graph.nodes.size());
  BackwardPlan plan = follow_parameters(graph, traits);
  prune_without_loss(graph, plan);
  if (is_forced) force_all(traits, plan);
  refuse_impossible(traits, plan);
  mark_gradients(graph, plan);
  return plan;
}

}  // namespace speedo
