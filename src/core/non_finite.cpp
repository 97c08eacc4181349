#include "core/non_finite.hpp"

#include <span>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>
#include <speedo/core/net.hpp>

namespace speedo {
namespace {

std::string name_of(const ParameterSlot& slot, const char* what) {
  return fmt::format("the {} of layer '{}' (parameter {})", what, slot.layer, slot.index);
}

std::string find_in_weights(Net& net) {
  for (const ParameterSlot& slot : net.layout().slots()) {
    const float* const values = net.weights().data() + slot.offset;
    if (!net.backend().all_finite(slot.count(), values)) return name_of(slot, "weights");
  }
  return {};
}

// Values that another layer computes in place as well are there after that one has run.
std::string find_in_tops(Net& net, const Net::LayerView& view) {
  for (std::size_t i = 0; i < view.tops.size(); ++i) {
    const Tensor& top = *view.tops[i];
    if (!top.has_data() || net.backend().all_finite(top.elements(), top.data())) continue;
    return fmt::format("blob '{}' of layer '{}'", view.top_names[i], view.layer->name());
  }
  return {};
}

}  // namespace

Result<std::string> find_non_finite_values(Net& net, int passes) {
  if (std::string found = find_in_weights(net); !found.empty()) return found;
  const std::vector<Net::LayerView>& layers = net.layers();
  for (int pass = 0; pass < passes; ++pass) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      SPEEDO_TRY(net.rehearse_layer(i));
      if (std::string found = find_in_tops(net, layers[i]); !found.empty()) return found;
    }
  }
  return std::string();
}

std::string find_non_finite_gradients(Net& net, const Bucket& range) {
  const std::span<const ParameterSlot> slots = net.layout().slots();
  for (std::size_t i = slots.size(); i-- > 0;) {
    const ParameterSlot& slot = slots[i];
    if (common_part({slot.offset, slot.count()}, range).count == 0) continue;
    const float* const values = net.gradients().data() + slot.offset;
    if (!net.backend().all_finite(slot.count(), values)) return name_of(slot, "gradient");
  }
  return {};
}

}  // namespace speedo
