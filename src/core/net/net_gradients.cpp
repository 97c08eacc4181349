// Gradients that layers leave in other ways than by adding to them: as factors, or written over.

#include <algorithm>
#include <map>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>

#include "core/net/net_impl.hpp"

namespace speedo {
namespace {

// The layers that use each slot, by how many of them do so.
std::map<std::size_t, int> users_of_slots(const std::vector<Net::LayerView>& views) {
  std::map<std::size_t, int> users;
  for (const Net::LayerView& view : views) {
    for (const std::size_t slot : view.slots) ++users[slot];
  }
  return users;
}

std::optional<FactorShape> factor_shape_of(const Net::LayerView& view) {
  if (view.slots.empty() || !view.needs_backward || view.shapes_vary) return std::nullopt;
  std::optional<FactorShape> shape = view.layer->gradient_factors();
  if (shape) shape->slot = view.slots.front();
  return shape;
}

}  // namespace

// Weights of one layer alone, which its backward pass reaches whenever the net's does.
void Net::Impl::note_sole_writers() {
  const std::map<std::size_t, int> users = users_of_slots(views);
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
  const std::map<std::size_t, int> users = users_of_slots(impl_->views);
  for (const LayerView& view : impl_->views) {
    const std::optional<FactorShape> shape = factor_shape_of(view);
    if (shape && users.at(shape->slot) == 1) shapes.push_back(*shape);
  }
  std::ranges::sort(shapes, {}, &FactorShape::slot);
  return shapes;
}

void Net::leave_factors(std::span<const FactorShape> shapes) {
  std::size_t found = 0;
  for (const LayerView& view : impl_->views) {
    const std::optional<FactorShape> shape = factor_shape_of(view);
    if (!shape) continue;
    const bool leaves = std::ranges::find(shapes, *shape) != shapes.end();
    view.layer->leave_factors(leaves);
    found += leaves ? 1 : 0;
  }
  SPEEDO_ASSERT(found == shapes.size());
}

}  // namespace speedo
