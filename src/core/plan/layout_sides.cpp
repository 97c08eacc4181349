// Two sides, native and plain. Most nodes have theirs; the others form groups that are tied to each
// other, and a group takes the side that costs fewer reordered bytes at its borders.
#include "core/plan/layout_sides.hpp"

#include <algorithm>
#include <numeric>

#include <speedo/base/assert.hpp>

#include "core/array_shape.hpp"
#include "core/layers/reorder.hpp"

namespace speedo {
namespace {

enum class Side { kFree, kNative, kPlain };  // in a group the last of these wins

struct Costs {
  double if_native = 0.0, if_plain = 0.0;  // bytes
  Side source = Side::kFree;               // where the group's first bottom comes from
};

class SideChooser {
 public:
  SideChooser(LayoutKind kind, const NetGraph& graph, std::span<const LayoutTraits> traits)
      : kind_(kind),
        nodes_(graph.nodes),
        blobs_(graph.blobs),
        traits_(traits),
        group_(graph.nodes.size()),
        costs_(graph.nodes.size()),
        writer_(graph.blobs.size(), kNobody) {
    std::iota(group_.begin(), group_.end(), std::size_t{0});
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      // A top with a loss weight has the weight in all of its gradient, where padding would have to
      // be spared.
      const bool must_be_plain = nodes_[i].shapes_vary || nodes_[i].has_loss();
      sides_.push_back(must_be_plain ? Side::kPlain : own_side(i));
    }
  }

  std::vector<bool> choose() {
    join_writers();
    join_free_neighbours();
    add_costs();
    std::vector<bool> native;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const std::size_t group = find(i);
      native.push_back(sides_[group] == Side::kNative ||
                       (sides_[group] == Side::kFree && prefers_native(costs_[group])));
    }
    return native;
  }

 private:
  static constexpr std::size_t kNobody = SIZE_MAX;

  Side own_side(std::size_t node) const;
  bool is_padded(std::size_t blob) const;
  bool reaches_over(const std::vector<std::size_t>& parts) const;
  void join_writers();
  void join_free_neighbours();
  void add_costs();
  void add_cost(std::size_t reader, std::size_t bottom);

  // A draw goes to the source's side, so that an in-place layer can be fused with what writes its
  // blob.
  static bool prefers_native(const Costs& costs) {
    if (costs.if_native != costs.if_plain) return costs.if_native < costs.if_plain;
    return costs.source == Side::kNative;
  }
  std::size_t find(std::size_t node) {
    while (group_[node] != node) node = group_[node] = group_[group_[node]];
    return node;
  }
  void join(std::size_t a, std::size_t b) {
    a = find(a);
    b = find(b);
    sides_[std::min(a, b)] = std::max(sides_[a], sides_[b]);
    group_[std::max(a, b)] = std::min(a, b);
  }

  LayoutKind kind_;
  const std::vector<GraphNode>& nodes_;
  const std::vector<GraphBlob>& blobs_;
  std::span<const LayoutTraits> traits_;
  std::vector<Side> sides_;          // of a group at its first node
  std::vector<std::size_t> group_;   // union-find
  std::vector<Costs> costs_;         // of a group at its first node
  std::vector<std::size_t> writer_;  // of a blob: the first node that writes it
};

bool SideChooser::is_padded(std::size_t blob) const {
  const Shape& shape = blobs_[blob].shape;
  return native_layout(kind_, shape).is_padded(shape[1]);
}

// Whether a block of one part would hold channels of the next.
bool SideChooser::reaches_over(const std::vector<std::size_t>& parts) const {
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    if (is_padded(parts[i])) return true;
  }
  return false;
}

Side SideChooser::own_side(std::size_t node) const {
  const GraphNode& it = nodes_[node];
  std::vector<std::size_t> blobs = it.bottoms;
  blobs.insert(blobs.end(), it.tops.begin(), it.tops.end());
  const auto has_channels = [this](std::size_t blob) {
    return blobs_[blob].shape.axes() >= 2 && blobs_[blob].shape.count() > 0;
  };
  if (!std::all_of(blobs.begin(), blobs.end(), has_channels)) return Side::kPlain;
  switch (traits_[node].rule) {
    case LayoutRule::kPlain:
      return Side::kPlain;
    case LayoutRule::kSame:
      return Side::kFree;
    case LayoutRule::kSameUnpadded: {
      const auto is_cut = [this](std::size_t blob) { return is_padded(blob); };
      return std::any_of(blobs.begin(), blobs.end(), is_cut) ? Side::kPlain : Side::kFree;
    }
    case LayoutRule::kSameUncut:
      return reaches_over(it.bottoms) || reaches_over(it.tops) ? Side::kPlain : Side::kFree;
    case LayoutRule::kNative:
      return Side::kNative;
  }
  return Side::kPlain;
}

void SideChooser::join_writers() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    for (const std::size_t top : nodes_[i].tops) {
      if (writer_[top] == kNobody) {
        writer_[top] = i;
      } else {
        join(writer_[top], i);
      }
    }
  }
}

void SideChooser::join_free_neighbours() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    for (const std::size_t bottom : nodes_[i].bottoms) {
      const std::size_t writer = writer_[bottom];
      SPEEDO_ASSERT(writer != kNobody);
      if (sides_[find(i)] == Side::kFree && sides_[find(writer)] == Side::kFree) join(i, writer);
    }
  }
}

void SideChooser::add_costs() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    for (std::size_t bottom = 0; bottom < nodes_[i].bottoms.size(); ++bottom) add_cost(i, bottom);
  }
}

// Of two groups that meet at a bottom, at most one is free: free neighbours are one group.
void SideChooser::add_cost(std::size_t reader, std::size_t bottom) {
  const std::size_t blob = nodes_[reader].bottoms[bottom];
  const std::size_t from = find(writer_[blob]), to = find(reader);
  const bool reads_free = sides_[from] == Side::kFree;
  if (from == to || (!reads_free && sides_[to] != Side::kFree)) return;
  Costs& costs = costs_[reads_free ? from : to];
  if (!reads_free && costs.source == Side::kFree) costs.source = sides_[from];
  const Layout native = native_layout(kind_, blobs_[blob].shape);
  const ArrayShape array = array_shape_of(blobs_[blob].shape);
  if (same_order(array, native, {})) return;
  const Side fixed = sides_[reads_free ? to : from];
  const bool takes_both = reads_free && bottom == 0 && fixed == Side::kNative &&
                          traits_[reader].takes_plain_bottom;
  if (takes_both) return;
  const double bytes = static_cast<double>(array.storage_floats(native)) * double{sizeof(float)};
  (fixed == Side::kNative ? costs.if_plain : costs.if_native) += bytes;
}

}  // namespace

Layout native_layout(LayoutKind kind, const Shape& shape) {
  if (shape.axes() < 2 || shape.count() == 0) return {};
  return layout_of(kind, shape[1]);
}

std::vector<bool> choose_native_nodes(LayoutKind kind, const NetGraph& graph,
                                      std::span<const LayoutTraits> traits) {
  if (kind == LayoutKind::kPlain) return std::vector<bool>(graph.nodes.size(), false);
  return SideChooser(kind, graph, traits).choose();
}

}  // namespace speedo
