#include "core/plan/layout_plan.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>

#include "core/array_shape.hpp"
#include "core/layers/reorder.hpp"
#include "core/plan/layout_sides.hpp"

namespace speedo {
namespace {

class LayoutPlanner {
 public:
  LayoutPlanner(LayoutKind kind, const NetGraph& graph, std::span<const LayoutTraits> traits)
      : kind_(kind), native_(choose_native_nodes(kind, graph, traits)) {
    plan_.blobs = graph.blobs;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      place(graph.nodes[i], traits[i], native_[i]);
    }
  }

  const NetGraph& plan() const { return plan_; }

 private:
  void place(GraphNode node, const LayoutTraits& traits, bool is_native);
  void read_in_layout(GraphNode& reader, std::size_t bottom, Layout layout);
  std::size_t find_reorder(const GraphBlob& source, Layout layout) const;
  void add_reordered(GraphNode& reorder, std::size_t source, Layout layout, bool propagates);
  GraphBlob& blob(std::size_t index) { return plan_.blobs[index]; }

  LayoutKind kind_;
  std::vector<bool> native_;
  NetGraph plan_;
};

void LayoutPlanner::place(GraphNode node, const LayoutTraits& traits, bool is_native) {
  const auto layout_for = [&](std::size_t index) {
    return is_native ? native_layout(kind_, blob(index).shape) : Layout{};
  };
  for (std::size_t i = 0; i < node.bottoms.size(); ++i) {
    const std::size_t bottom = node.bottoms[i];
    const bool takes_it =
        is_native && i == 0 && blob(bottom).layout.is_plain() && traits.takes_plain_bottom;
    if (!takes_it) read_in_layout(node, i, layout_for(bottom));
  }
  for (const SharedTop& shared : traits.shared_tops) {
    GraphBlob& top = blob(node.tops[shared.top]);
    const GraphBlob& bottom = blob(node.bottoms[shared.bottom]);
    top.values = bottom.values;
    if (shared.with_gradient) top.gradient = bottom.gradient;
  }
  for (const std::size_t top : node.tops) blob(top).layout = layout_for(top);
  plan_.nodes.push_back(std::move(node));
}

// Makes a bottom of the next node one that lies as the node needs it.
void LayoutPlanner::read_in_layout(GraphNode& reader, std::size_t bottom, Layout layout) {
  const std::size_t source = reader.bottoms[bottom];
  if (blob(source).layout == layout) return;
  const std::size_t position = find_reorder(blob(source), layout);
  if (position == plan_.nodes.size()) plan_.nodes.emplace_back();
  const bool propagates = reader.needs_backward && reader.propagate[bottom];
  add_reordered(plan_.nodes[position], source, layout, propagates);
  reader.bottoms[bottom] = plan_.blobs.size() - 1;
}

// The Reorder node that already reorders these values, or one behind the last node.
std::size_t LayoutPlanner::find_reorder(const GraphBlob& source, Layout layout) const {
  for (std::size_t i = plan_.nodes.size(); i-- > 0;) {
    const GraphNode& node = plan_.nodes[i];
    if (node.is_reorder()) {
      const GraphBlob& known = plan_.blobs[node.bottoms[0]];
      const bool is_same = known.values == source.values && known.shape == source.shape;
      if (is_same && plan_.blobs[node.tops[0]].layout == layout) return i;
    }
    // Whoever writes the values, or gives them another name, must come first.
    const auto has_values = [&](std::size_t top) {
      return plan_.blobs[top].values == source.values;
    };
    if (std::any_of(node.tops.begin(), node.tops.end(), has_values)) break;
  }
  return plan_.nodes.size();
}

// Lets a Reorder node make a new last blob of the source.
void LayoutPlanner::add_reordered(GraphNode& reorder, std::size_t source, Layout layout,
                                  bool propagates) {
  const GraphBlob from = blob(source);
  const std::size_t top = plan_.add_blob({from.shape, layout, 0, 0, propagates});
  if (same_order(array_shape_of(from.shape), from.layout, layout)) {
    blob(top).values = from.values;
    blob(top).gradient = from.gradient;
  } else if (!reorder.tops.empty()) {
    blob(top).values = blob(reorder.tops[0]).values;
  }
  reorder.bottoms.push_back(source);
  reorder.tops.push_back(top);
  reorder.loss_weights.push_back(0.0F);
  reorder.propagate.push_back(propagates);
  reorder.needs_backward = reorder.needs_backward || propagates;
}

}  // namespace

NetGraph plan_layouts(LayoutKind kind, const NetGraph& graph,
                      std::span<const LayoutTraits> traits) {
  SPEEDO_ASSERT(traits.size() == graph.nodes.size());
  return LayoutPlanner(kind, graph, traits).plan();
}

}  // namespace speedo
