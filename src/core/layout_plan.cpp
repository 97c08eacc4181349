// One layout for each blob, and a Reorder layer where a layer reads it in another one.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>

#include "core/layers/reorder.hpp"
#include "core/layout_sides.hpp"
#include "core/net_impl.hpp"

namespace speedo {
namespace {

LayoutKind preferred_kind(const Backend& backend, std::span<const Net::LayerView> layers) {
  std::vector<ConvolutionShape> shapes;
  for (const Net::LayerView& view : layers) {
    const ConvolutionShape* shape = view.layer->convolution_shape();
    if (shape != nullptr) shapes.push_back(*shape);
  }
  return shapes.empty() ? LayoutKind::kPlain : backend.preferred_layout(shapes);
}

// A top with a loss weight has the weight in all of its gradient, where padding would have to be
// spared.
bool has_loss(const std::vector<float>& loss_weights) {
  return std::any_of(loss_weights.begin(), loss_weights.end(),
                     [](float weight) { return weight != 0.0F; });
}

}  // namespace

Result<void> Net::Impl::plan_layouts() {
  const LayoutKind kind = preferred_kind(*options.backend, views);
  std::vector<bool> must_be_plain;
  for (std::size_t i = 0; i < views.size(); ++i) {
    must_be_plain.push_back(views[i].shapes_vary || has_loss(wiring[i].loss_weights));
  }
  const std::vector<bool> native = choose_native_layers(kind, views, must_be_plain);

  std::vector<LayerView> old_views = std::exchange(views, {});
  std::vector<LayerWiring> old_wiring = std::exchange(wiring, {});
  for (std::size_t i = 0; i < old_views.size(); ++i) {
    LayerView& view = old_views[i];
    const auto layout_in = [&](const Tensor& tensor) {
      return native[i] ? native_layout(kind, tensor) : Layout{};
    };
    for (std::size_t bottom = 0; bottom < view.bottoms.size(); ++bottom) {
      const Tensor& tensor = *view.bottoms[bottom];
      const bool takes_it = native[i] && bottom == 0 && tensor.layout().is_plain() &&
                            view.layer->takes_plain_bottom(kind);
      if (takes_it) continue;
      SPEEDO_TRY(read_in_layout(view, old_wiring[i], bottom, layout_in(tensor)));
    }
    // Again, as layers that share memory with a bottom must do so with the one they have now.
    SPEEDO_TRY(shape_layer(view));
    for (Tensor* top : view.tops) top->set_layout(layout_in(*top));
    views.push_back(std::move(view));
    wiring.push_back(std::move(old_wiring[i]));
  }
  return {};
}

// Makes a bottom of the next layer one that lies as the layer needs it.
Result<void> Net::Impl::read_in_layout(LayerView& view, LayerWiring& wires, std::size_t bottom,
                                       Layout layout) {
  if (view.bottoms[bottom]->layout() == layout) return {};
  const std::size_t position = find_reorder(*view.bottoms[bottom], layout);
  SPEEDO_TRY(add_reorder(position, view, wires, bottom, layout));
  wires.bottoms[bottom] = blobs.size() - 1;
  view.bottoms[bottom] = blobs.back().tensor.get();
  return {};
}

// The Reorder layer that already reorders these values, or one behind the last layer.
std::size_t Net::Impl::find_reorder(const Tensor& source, Layout layout) const {
  const auto holds_source = [&](const Tensor* tensor) {
    return tensor->data_identity() == source.data_identity() && tensor->shape() == source.shape();
  };
  for (std::size_t i = views.size(); i-- > 0;) {
    const LayerView& view = views[i];
    if (view.is_reorder && holds_source(view.bottoms[0]) && view.tops[0]->layout() == layout) {
      return i;
    }
    // Whoever writes the values, or gives them another name, must come first.
    const auto has_values = [&](const Tensor* top) {
      return top->data_identity() == source.data_identity();
    };
    if (std::any_of(view.tops.begin(), view.tops.end(), has_values)) break;
  }
  return views.size();
}

// Lets the Reorder layer at `position`, which may be a new one, make a new last blob of the
// reader's bottom.
Result<void> Net::Impl::add_reorder(std::size_t position, const LayerView& reader,
                                    const LayerWiring& wires, std::size_t bottom, Layout layout) {
  const std::string& source = reader.bottom_names[bottom];
  const std::string target = fmt::format("{}_reorder", source);
  if (position == views.size()) {
    caffe::LayerParameter message;
    message.set_name(target);
    message.set_type("Reorder");
    LayerView& view = views.emplace_back();
    view.layer = reorders.emplace_back(std::make_unique<ReorderLayer>(message, layout)).get();
    view.is_reorder = true;
    wiring.emplace_back();
  }
  LayerView& view = views[position];
  LayerWiring& reorder = wiring[position];
  const bool propagates = reader.needs_backward && reader.propagate[bottom];
  blobs.push_back({target, std::make_unique<Tensor>(), propagates, propagates});
  view.bottoms.push_back(reader.bottoms[bottom]);
  view.bottom_names.push_back(source);
  view.tops.push_back(blobs.back().tensor.get());
  view.top_names.push_back(target);
  view.propagate.push_back(propagates);
  view.needs_backward = view.needs_backward || propagates;
  reorder.bottoms.push_back(wires.bottoms[bottom]);
  reorder.tops.push_back(blobs.size() - 1);
  reorder.loss_weights.push_back(0.0F);

  LayerContext context;
  context.backend = options.backend;
  context.phase = options.phase;
  context.plan_only = options.plan_only;
  SPEEDO_TRY(view.layer->setup(context, view.bottoms, view.tops));
  return view.layer->reshape(view.bottoms, view.tops);
}

}  // namespace speedo
