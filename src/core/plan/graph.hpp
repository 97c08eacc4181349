#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <speedo/backend/layout.hpp>
#include <speedo/core/layer.hpp>
#include <speedo/core/shape.hpp>

namespace speedo {

// What plans know of a blob. Blobs with the same number in `values` (`gradient`) have their values
// (gradients) in the same memory.
struct GraphBlob {
  Shape shape;
  Layout layout;
  std::size_t values = 0, gradient = 0;
  bool needs_grad = false;  // the backward pass touches its gradient

  // The memory of its values, or its gradient, in floats.
  std::int64_t storage_floats() const;
};

// A top that has its values, and maybe its gradient, in the memory of a bottom.
struct SharedTop {
  std::size_t top, bottom;  // by their places in the node
  bool with_gradient;
};

// A layer as plans see it: what it reads and makes, and what earlier plans said of it.
struct GraphNode {
  // In `layer` of a node that a layout plan put in: a Reorder layer.
  static constexpr std::size_t kReorder = SIZE_MAX;

  std::size_t layer = kReorder;            // of the net
  std::vector<std::size_t> bottoms, tops;  // blobs
  std::vector<float> loss_weights;         // per top
  std::vector<bool> propagate = {};        // per bottom
  bool needs_backward = false;
  bool shapes_vary = false;  // from pass to pass, of bottoms or tops
  Fused fused = {};          // passes that the layer before does

  bool is_reorder() const { return layer == kReorder; }
  bool has_loss() const;
  bool reads(std::size_t blob) const;
  bool makes(std::size_t blob) const;
};

// A net without its layers and its memory: nodes in order of execution, which every plan is a
// function of.
struct NetGraph {
  std::vector<GraphNode> nodes;
  std::vector<GraphBlob> blobs;

  // A new blob that shares memory with none.
  std::size_t add_blob(GraphBlob blob);
};

}  // namespace speedo
