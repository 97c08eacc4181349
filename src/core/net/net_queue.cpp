// Passes of a net on a device that computes beside the host: losses stay there.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>

#include "core/net/net_impl.hpp"

namespace speedo {

// Layers that bring data and come before all others.
std::size_t Net::Impl::source_count() const {
  const auto first = std::ranges::find_if_not(
      views, [](const LayerView& view) { return view.layer->brings_data(); });
  return static_cast<std::size_t>(first - views.begin());
}

// Also one without weight: that it is not finite is how it says that its labels are wrong.
bool Net::Impl::is_term(std::size_t node, std::size_t top) const {
  return planned.nodes[node].loss_weights[top] != 0.0F ||
         views[node].layer->default_loss_weight(static_cast<int>(top)) != 0.0F;
}

Result<void> Net::Impl::queue_forward(DeviceSteps& steps, std::size_t node) {
  const LayerView& view = views[node];
  SPEEDO_TRY(follow_shapes(node));
  if (!view.fused.forward) {
    if (auto done = view.layer->queue_forward(steps, view.bottoms, view.tops); !done) {
      return with_sources(std::move(done).error(), messages);
    }
    count_layer();
  }
  queue_terms(steps, node);
  return {};
}

void Net::Impl::queue_terms(DeviceSteps& steps, std::size_t node) {
  std::array<DeviceSteps::Term, DeviceSteps::kTermsMax> terms;
  std::size_t count = 0;
  for (std::size_t i = 0; i < views[node].tops.size(); ++i) {
    if (!is_term(node, i)) continue;
    SPEEDO_ASSERT(count < terms.size() && views[node].tops[i]->count() == 1);
    terms[count++] = {planned.nodes[node].loss_weights[i], views[node].tops[i]->data()};
  }
  if (count > 0) steps.add_terms(std::span(terms).first(count));
}

Result<void> Net::queue_sources(DeviceSteps& steps) {
  SPEEDO_TRY(impl_->follow_batches());
  impl_->begin_forward();
  const std::size_t count = impl_->source_count();
  for (std::size_t node = 0; node < count; ++node) SPEEDO_TRY(impl_->queue_forward(steps, node));
  return {};
}

Result<void> Net::queue_forward(DeviceSteps& steps) {
  for (std::size_t node = impl_->source_count(); node < impl_->views.size(); ++node) {
    SPEEDO_TRY(impl_->queue_forward(steps, node));
  }
  return {};
}

void Net::queue_backward(DeviceSteps& steps) {
  SPEEDO_ASSERT(impl_->options.trains);
  impl_->begin_backward();
  for (std::size_t node = impl_->views.size(); node-- > 0;) {
    const LayerView& view = impl_->views[node];
    if (!view.needs_backward || view.fused.backward) continue;
    view.layer->queue_backward(steps, view.tops, view.propagate, view.bottoms);
    impl_->count_layer();
  }
}

std::string Net::queue_obstacle() const {
  for (std::size_t node = 0; node < impl_->views.size(); ++node) {
    const LayerView& view = impl_->views[node];
    std::size_t terms = 0;
    for (std::size_t i = 0; i < view.tops.size(); ++i) {
      if (!impl_->is_term(node, i)) continue;
      ++terms;
      if (view.tops[i]->count() == 1) continue;
      return fmt::format("the loss of layer '{}' is not a single value", view.layer->name());
    }
    if (terms <= DeviceSteps::kTermsMax) continue;
    return fmt::format("layer '{}' has {} losses", view.layer->name(), terms);
  }
  return {};
}

std::string Net::recording_obstacle() const {
  const std::size_t sources = impl_->source_count();
  for (std::size_t node = 0; node < impl_->views.size(); ++node) {
    const LayerView& view = impl_->views[node];
    if (view.shapes_vary || view.layer->batches_vary()) {
      return fmt::format("the shapes of layer '{}' vary", view.layer->name());
    }
    if (node < sources || !view.layer->brings_data()) continue;
    return fmt::format("layer '{}' brings data behind other layers", view.layer->name());
  }
  return {};
}

Random Net::pass_random() const { return impl_->random; }

void Net::set_pass_random(const Random& random) { impl_->random = random; }

}  // namespace speedo
