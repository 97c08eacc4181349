// Two sides, native and plain. Most layers have theirs; the others form groups that are tied to
// each other, and a group takes the side that costs fewer reordered bytes at its borders.
#include "core/layout_sides.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

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
  SideChooser(LayoutKind kind, std::span<const Net::LayerView> layers,
              const std::vector<bool>& must_be_plain)
      : kind_(kind), layers_(layers), group_(layers.size()), costs_(layers.size()) {
    std::iota(group_.begin(), group_.end(), std::size_t{0});
    for (std::size_t i = 0; i < layers.size(); ++i) {
      sides_.push_back(must_be_plain[i] ? Side::kPlain : own_side(layers[i]));
    }
  }

  std::vector<bool> choose() {
    join_writers();
    join_free_neighbours();
    add_costs();
    std::vector<bool> native;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const std::size_t group = find(i);
      native.push_back(sides_[group] == Side::kNative ||
                       (sides_[group] == Side::kFree && prefers_native(costs_[group])));
    }
    return native;
  }

 private:
  Side own_side(const Net::LayerView& view) const;
  bool reaches_over(const std::vector<Tensor*>& parts) const;
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
  std::size_t find(std::size_t layer) {
    while (group_[layer] != layer) layer = group_[layer] = group_[group_[layer]];
    return layer;
  }
  void join(std::size_t a, std::size_t b) {
    a = find(a);
    b = find(b);
    sides_[std::min(a, b)] = std::max(sides_[a], sides_[b]);
    group_[std::max(a, b)] = std::min(a, b);
  }

  LayoutKind kind_;
  std::span<const Net::LayerView> layers_;
  std::vector<Side> sides_;         // of a group at its first layer
  std::vector<std::size_t> group_;  // union-find
  std::vector<Costs> costs_;        // of a group at its first layer
  std::unordered_map<const Tensor*, std::size_t> writer_;
};

// Whether a block of one part would hold channels of the next.
bool SideChooser::reaches_over(const std::vector<Tensor*>& parts) const {
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    if (native_layout(kind_, *parts[i]).is_padded(parts[i]->shape()[1])) return true;
  }
  return false;
}

Side SideChooser::own_side(const Net::LayerView& view) const {
  std::vector<Tensor*> tensors = view.bottoms;
  tensors.insert(tensors.end(), view.tops.begin(), view.tops.end());
  const auto has_channels = [](const Tensor* tensor) {
    return tensor->shape().axes() >= 2 && tensor->count() > 0;
  };
  const auto is_padded = [this](const Tensor* tensor) {
    return native_layout(kind_, *tensor).is_padded(tensor->shape()[1]);
  };
  if (!std::all_of(tensors.begin(), tensors.end(), has_channels)) return Side::kPlain;
  switch (view.layer->layout_rule()) {
    case LayoutRule::kPlain:
      return Side::kPlain;
    case LayoutRule::kSame:
      return Side::kFree;
    case LayoutRule::kSameUnpadded:
      return std::any_of(tensors.begin(), tensors.end(), is_padded) ? Side::kPlain : Side::kFree;
    case LayoutRule::kSameUncut:
      return reaches_over(view.bottoms) || reaches_over(view.tops) ? Side::kPlain : Side::kFree;
    case LayoutRule::kNative:
      return Side::kNative;
  }
  return Side::kPlain;
}

void SideChooser::join_writers() {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    for (const Tensor* top : layers_[i].tops) {
      const auto [known, is_new] = writer_.emplace(top, i);
      if (!is_new) join(known->second, i);
    }
  }
}

void SideChooser::join_free_neighbours() {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    for (const Tensor* bottom : layers_[i].bottoms) {
      const std::size_t writer = writer_.at(bottom);
      if (sides_[find(i)] == Side::kFree && sides_[find(writer)] == Side::kFree) join(i, writer);
    }
  }
}

void SideChooser::add_costs() {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    for (std::size_t bottom = 0; bottom < layers_[i].bottoms.size(); ++bottom) add_cost(i, bottom);
  }
}

// Of two groups that meet at a bottom, at most one is free: free neighbours are one group.
void SideChooser::add_cost(std::size_t reader, std::size_t bottom) {
  const Tensor& tensor = *layers_[reader].bottoms[bottom];
  const std::size_t from = find(writer_.at(&tensor)), to = find(reader);
  const bool reads_free = sides_[from] == Side::kFree;
  if (from == to || (!reads_free && sides_[to] != Side::kFree)) return;
  Costs& costs = costs_[reads_free ? from : to];
  if (!reads_free && costs.source == Side::kFree) costs.source = sides_[from];
  const Layout native = native_layout(kind_, tensor);
  if (same_order(tensor.array_shape(), native, {})) return;
  const Side fixed = sides_[reads_free ? to : from];
  const bool takes_both = reads_free && bottom == 0 && fixed == Side::kNative &&
                          layers_[reader].layer->takes_plain_bottom(kind_);
  if (takes_both) return;
  const double bytes = static_cast<double>(tensor.array_shape().storage_count(native)) * 4.0;
  (fixed == Side::kNative ? costs.if_plain : costs.if_native) += bytes;
}

}  // namespace

Layout native_layout(LayoutKind kind, const Tensor& tensor) {
  if (tensor.shape().axes() < 2 || tensor.count() == 0) return {};
  return layout_of(kind, tensor.shape()[1]);
}

std::vector<bool> choose_native_layers(LayoutKind kind, std::span<const Net::LayerView> layers,
                                       const std::vector<bool>& must_be_plain) {
  if (kind == LayoutKind::kPlain) return std::vector<bool>(layers.size(), false);
  return SideChooser(kind, layers, must_be_plain).choose();
}

}  // namespace speedo
