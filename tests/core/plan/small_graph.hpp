#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/plan/graph.hpp"

namespace speedo {

using Indices = std::vector<std::size_t>;

// A graph of `blobs` blobs of one shape, whose nodes come by add().
class SmallGraph {
 public:
  explicit SmallGraph(std::size_t blobs, const Shape& shape = {2, 16, 3, 3}) {
    for (std::size_t i = 0; i < blobs; ++i) graph.add_blob({shape, {}, 0, 0, true});
  }

  // A node without loss that runs backward, to all of its bottoms.
  GraphNode& add(Indices bottoms, Indices tops) {
    GraphNode& node = graph.nodes.emplace_back();
    node.layer = graph.nodes.size() - 1;
    node.loss_weights.assign(tops.size(), 0.0F);
    node.propagate.assign(bottoms.size(), true);
    node.needs_backward = true;
    node.bottoms = std::move(bottoms);
    node.tops = std::move(tops);
    return node;
  }

  NetGraph graph;
};

}  // namespace speedo
