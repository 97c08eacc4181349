#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/plan/graph.hpp"

namespace speedo {

// What the backward plan asks of a node's layer.
struct BackwardTraits {
  std::vector<bool> trained;         // per parameter: a solver may change it
  std::vector<bool> propagate_down;  // per bottom, as the prototxt wants it; empty: as needed
  std::vector<bool> can_propagate;   // per bottom: it can have a gradient at all
  std::vector<bool> may_be_forced;   // per bottom: force_backward asks for its gradient
};

// Which nodes run backward, which bottoms get gradients there, and which blobs have gradients.
struct BackwardPlan {
  struct Bottom {
    std::size_t node, bottom;
  };

  std::vector<bool> needs_backward;          // per node
  std::vector<std::vector<bool>> propagate;  // per node and bottom
  std::vector<bool> needs_grad;              // per blob
  // Bottoms that depend on trained parameters, or of which the prototxt wants it, but that cannot
  // have a gradient: they get none.
  std::vector<Bottom> refused;
};

// What lies between a parameter that is trained and a loss takes part in the backward pass: Caffe's
// rules, including what propagate_down and force_backward change. Requires: bottoms, tops and loss
// weights; blobs that in-place nodes write count as one.
BackwardPlan plan_backward(const NetGraph& graph, std::span<const BackwardTraits> traits,
                           bool is_forced);

}  // namespace speedo
