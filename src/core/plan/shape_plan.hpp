#pragma once

#include <vector>

#include "core/plan/graph.hpp"

namespace speedo {

// Which nodes' shapes change from pass to pass: from a layer that learns the shapes of its tops in
// its forward pass (`learns_shapes`, per node) on, all that depend on one.
std::vector<bool> find_varying_shapes(const NetGraph& graph,
                                      const std::vector<bool>& learns_shapes);

}  // namespace speedo
