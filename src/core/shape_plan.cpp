// Blobs whose shapes layers learn in their forward passes, and the layers that follow them.
#include <algorithm>

#include <speedo/backend/backend.hpp>

#include "core/net_impl.hpp"

namespace speedo {
namespace {

std::vector<Shape> shapes_of(const std::vector<Tensor*>& tensors) {
  std::vector<Shape> shapes;
  for (const Tensor* tensor : tensors) shapes.push_back(tensor->shape());
  return shapes;
}

}  // namespace

// From a layer that learns the shapes of its tops on, all that depend on one.
void Net::Impl::mark_varying_shapes() {
  std::set<std::size_t> varying;  // blobs
  for (std::size_t layer = 0; layer < views.size(); ++layer) {
    const std::vector<std::size_t>& bottoms = wiring[layer].bottoms;
    const bool reads_one = std::any_of(bottoms.begin(), bottoms.end(),
                                       [&](std::size_t blob) { return varying.count(blob) > 0; });
    views[layer].shapes_vary = reads_one || views[layer].layer->shapes_tops_in_forward();
    if (!views[layer].shapes_vary) continue;
    varying.insert(wiring[layer].tops.begin(), wiring[layer].tops.end());
  }
}

// Before a forward pass. Other shapes than the last time need other operations, but no more room:
// the first ones, for which the memory was planned, are the largest.
Result<void> Net::Impl::follow_shapes(std::size_t layer) {
  const LayerView& view = views[layer];
  if (!view.shapes_vary || followed_shapes[layer] == shapes_of(view.bottoms)) return {};
  followed_shapes[layer].clear();
  options.backend->device().synchronize();  // What is queued may use the operations that go.
  SPEEDO_TRY(shape_layer(view));
  SPEEDO_TRY(view.layer->prepare(view.bottoms, view.tops, options.trains && view.needs_backward));
  followed_shapes[layer] = shapes_of(view.bottoms);
  return {};
}

void Net::Impl::note_planned_shapes() {
  followed_shapes.clear();
  for (const LayerView& view : views) followed_shapes.push_back(shapes_of(view.bottoms));
}

}  // namespace speedo
