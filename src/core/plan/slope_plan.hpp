#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "core/plan/graph.hpp"

namespace speedo {

// Lets a node's layer say whether it applies the slope of the activation `before`; see
// Layer::apply_slope().
using SlopeOffer = std::function<bool(std::size_t node, std::size_t before)>;

// Offers nodes with one bottom, which hand a gradient on to it, the backward pass of the node that
// made the bottom in place. Returns those whose backward pass another one does. Nobody can see a
// difference: the gradients of both are in one place. Requires: a graph with its in-place plan, of
// a net that trains.
std::vector<std::size_t> plan_slopes(const NetGraph& graph, const SlopeOffer& offer);

}  // namespace speedo
