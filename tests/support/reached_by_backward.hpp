#pragma once

#include <cstddef>
#include <set>
#include <string>

#include <speedo/core/net.hpp>

namespace speedo::test {

// Blobs whose gradient some layer's backward pass writes.
inline std::set<std::string> reached_by_backward(const Net& net) {
  std::set<std::string> reached;
  for (const Net::LayerView& view : net.layers()) {
    for (std::size_t i = 0; view.needs_backward && i < view.bottom_names.size(); ++i) {
      if (view.propagate[i]) reached.insert(view.bottom_names[i]);
    }
  }
  return reached;
}

}  // namespace speedo::test
