// Who does whose work: layers that are fused with those behind them, and in-place layers that get a
// top of their own.
#include <algorithm>
#include <utility>

#include "core/net_impl.hpp"

namespace speedo {
namespace {

bool contains(const std::vector<std::size_t>& blobs, std::size_t blob) {
  return std::find(blobs.begin(), blobs.end(), blob) != blobs.end();
}

// Whether one backward pass can stand for both layers'.
bool run_backward_alike(const Net::LayerView& a, const Net::LayerView& b) {
  return a.needs_backward == b.needs_backward && a.propagate[0] == a.needs_backward &&
         b.propagate[0] == b.needs_backward;
}

}  // namespace

void Net::Impl::fuse_layers() {
  for (std::size_t layer = 0; layer < views.size(); ++layer) {
    const bool has_one_top = wiring[layer].tops.size() == 1 && !wiring[layer].bottoms.empty();
    if (has_one_top && !views[layer].fused.forward && !views[layer].shapes_vary) {
      fuse_into(layer);
    }
  }
}

// Offers a layer those that follow in place, one after another.
void Net::Impl::fuse_into(std::size_t layer) {
  const std::size_t blob = wiring[layer].tops[0];
  const std::vector<std::size_t> in_place{blob};
  for (std::size_t next = layer + 1; next < views.size(); ++next) {
    if (!contains(wiring[next].bottoms, blob)) {
      continue;
    }
    // A loss weight asks for the values between two layers.
    const bool is_asked_for = wiring[layer].loss_weights[0] != 0.0F;
    if (is_asked_for || wiring[next].bottoms != in_place || wiring[next].tops != in_place) {
      return;
    }
    const bool runs_backward = options.trains && views[next].needs_backward;
    const FusionTerms terms{
        .forward_alone = !runs_backward || !views[next].layer->keeps_bottom(),
        .with_backward = !options.trains || run_backward_alike(views[layer], views[next])};
    const Fused fused = views[layer].layer->fuse(*views[next].layer, terms);
    if (!fused.forward) {
      return;
    }
    views[next].fused = fused;
    wiring[layer].borrowed_slots.push_back(wiring[next].slots);
    if (fused.backward) {
      wiring[layer].fused_slots.push_back(wiring[next].slots);
    }
    if (wiring[next].loss_weights[0] != 0.0F) {
      return;
    }
  }
}

void Net::Impl::part_in_place_layers() {
  for (std::size_t layer = 0; layer < views.size(); ++layer) {
    const LayerView& view = views[layer];
    const bool is_in_place =
        !view.bottoms.empty() && !view.tops.empty() && view.bottoms[0] == view.tops[0];
    const bool is_run = !view.fused.forward || !view.fused.backward;
    const bool spares_bottom =
        is_in_place && ((view.needs_backward && view.layer->keeps_bottom()) || is_kept_top(layer));
    if (spares_bottom && is_run && !is_written_from_outside(wiring[layer].tops[0])) {
      give_own_top(layer);
    }
  }
}

// Whether the layer that made this one's bottom needs it as it made it.
bool Net::Impl::is_kept_top(std::size_t layer) const {
  for (std::size_t i = layer; i-- > 0;) {
    if (contains(wiring[i].tops, wiring[layer].bottoms[0])) {
      return views[i].needs_backward && views[i].layer->keeps_top();
    }
  }
  return false;
}

// An input's blob must stay where its owner finds it by name.
bool Net::Impl::is_written_from_outside(std::size_t blob) const {
  for (std::size_t i = 0; i < views.size(); ++i) {
    const std::vector<std::size_t>& tops = wiring[i].tops;
    const bool is_writer = std::find(tops.begin(), tops.end(), blob) != tops.end();
    if (is_writer) return views[i].layer->keeps_tops();
  }
  return false;
}

// The blob's values so far stay where they are; what the layer and those behind it write and read
// is another tensor. Who looks at the blob's gradient sees what the last layer, the first in the
// prototxt, leaves there.
void Net::Impl::give_own_top(std::size_t layer) {
  const std::size_t before = wiring[layer].tops[0];
  const std::size_t after = blobs.size();
  const Blob& old = blobs[before];
  auto tensor = std::make_unique<Tensor>(old.tensor->shape());
  // They cannot share it, as they may get different layouts.
  const bool is_looked_at = options.keep_blobs || !options.kept_blobs.empty();
  if (is_looked_at && views[layer].propagate[0]) tensor->show_gradients_of(*old.tensor);
  blobs.push_back({old.name, std::move(tensor), old.needs_backward, old.needs_grad});
  for (auto& [blob_name, index] : blob_index) {
    if (index == before) index = after;
  }
  const auto replace = [&](std::vector<std::size_t>& indices, std::vector<Tensor*>& tensors) {
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] != before) continue;
      indices[i] = after;
      tensors[i] = blobs[after].tensor.get();
    }
  };
  replace(wiring[layer].tops, views[layer].tops);
  for (std::size_t later = layer + 1; later < views.size(); ++later) {
    replace(wiring[later].bottoms, views[later].bottoms);
    replace(wiring[later].tops, views[later].tops);
  }
}

}  // namespace speedo
