// Gradients that layers leave in other ways than by adding to them: as factors, or written over.

#include <algorithm>
#include <map>
#include <optional>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>

#include "core/net/net_impl.hpp"

namespace speedo {
namespace {

std::optional<FactorShape> factor_shape_of(std::size_t slot, const Layer& layer) {
  std::optional<FactorShape> shape = layer.gradient_factors();
  if (shape) shape->slot = slot;
  return shape;
}

}  // namespace

// Weights of one layer alone, which its backward pass reaches whenever the net's does.
void Net::Impl::note_sole_writers() {
  std::map<std::size_t, int> users;  // layers of each slot
  for (const LayerView& view : views) {
    for (const std::size_t slot : view.slots) ++users[slot];
  }
  sole_writers.clear();
  for (const LayerView& view : views) {
    if (view.slots.empty() || !view.needs_backward || view.fused.backward || view.shapes_vary) {
      continue;
    }
    const std::size_t slot = view.slots.front();
    if (users.at(slot) == 1) sole_writers.emplace_back(slot, view.layer);
  }
  std::ranges::sort(sole_writers);
}

// Zeros that a layer would add to are not written where it can write over what is there: a pass
// over memory less to write, and one to read.
void Net::Impl::clear_gradients() {
  const auto slots = parameters->layout.slots();
  Arena& gradients = parameters->gradients;
  std::int64_t from = 0;
  for (const auto& [slot, layer] : sole_writers) {
    if (!layer->can_overwrite_gradient()) continue;
    layer->overwrite_gradient();
    options.backend->fill(slots[slot].offset - from, 0.0F, gradients.data() + from);
    from = slots[slot].offset + slots[slot].count();
  }
  options.backend->fill(gradients.size() - from, 0.0F, gradients.data() + from);
}

std::vector<FactorShape> Net::factor_shapes() const {
  std::vector<FactorShape> shapes;
  if (impl_->batches_vary()) return shapes;
  for (const auto& [slot, layer] : impl_->sole_writers) {
    if (const auto shape = factor_shape_of(slot, *layer)) shapes.push_back(*shape);
  }
  return shapes;
}

void Net::leave_factors(std::span<const FactorShape> shapes) {
  std::size_t found = 0;
  for (const auto& [slot, layer] : impl_->sole_writers) {
    const auto shape = factor_shape_of(slot, *layer);
    if (!shape) continue;
    const bool leaves = std::ranges::find(shapes, *shape) != shapes.end();
    layer->leave_factors(leaves);
    found += leaves ? 1 : 0;
  }
  SPEEDO_ASSERT(found == shapes.size());
}

}  // namespace speedo
