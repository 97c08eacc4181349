// Gradients that are left as factors.

#include <algorithm>
#include <map>

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
