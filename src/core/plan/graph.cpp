#include "core/plan/graph.hpp"

#include <algorithm>
#include <utility>

#include "core/array_shape.hpp"

namespace speedo {

std::int64_t GraphBlob::storage_floats() const {
  return array_shape_of(shape).storage_floats(layout);
}

bool GraphNode::has_loss() const {
  return std::any_of(loss_weights.begin(), loss_weights.end(),
                     [](float weight) { return weight != 0.0F; });
}

bool GraphNode::reads(std::size_t blob) const {
  return std::find(bottoms.begin(), bottoms.end(), blob) != bottoms.end();
}

bool GraphNode::makes(std::size_t blob) const {
  return std::find(tops.begin(), tops.end(), blob) != tops.end();
}

std::size_t NetGraph::add_blob(GraphBlob blob) {
  const std::size_t index = blobs.size();
  blob.values = blob.gradient = index;
  blobs.push_back(std::move(blob));
  return index;
}

}  // namespace speedo
