#include "core/plan/shape_plan.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>

namespace speedo {

std::vector<bool> find_varying_shapes(const NetGraph& graph,
                                      const std::vector<bool>& learns_shapes) {
  SPEEDO_ASSERT(learns_shapes.size() == graph.nodes.size());
  std::vector<bool> varying;
  std::vector<bool> blob_varies(graph.blobs.size());
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    const std::vector<std::size_t>& bottoms = graph.nodes[node].bottoms;
    const bool reads_one = std::any_of(bottoms.begin(), bottoms.end(),
                                       [&](std::size_t blob) { return blob_varies[blob]; });
    varying.push_back(reads_one || learns_shapes[node]);
    if (!varying.back()) continue;
    for (const std::size_t top : graph.nodes[node].tops) blob_varies[top] = true;
  }
  return varying;
}

}  // namespace speedo
