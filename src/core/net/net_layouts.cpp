// The layers of a planned graph: those of the prototxt with the bottoms and tops that they have
// there, and Reorder layers, each shaped again for the layouts of its blobs.
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>

#include "core/layers/reorder.hpp"
#include "core/net/layer_traits.hpp"
#include "core/net/net_impl.hpp"

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

// Whether each identity has one number, and each number one identity.
class Renumbering {
 public:
  bool agree(const void* identity, std::size_t number) {
    return numbers_.emplace(identity, number).first->second == number &&
           identities_.emplace(number, identity).first->second == identity;
  }

 private:
  std::unordered_map<const void*, std::size_t> numbers_;
  std::unordered_map<std::size_t, const void*> identities_;
};

}  // namespace

Result<void> Net::Impl::lay_out_blobs() {
  const LayoutKind kind = preferred_kind(*options.backend, built);
  std::vector<LayoutTraits> traits;
  for (const LayerView& view : built) traits.push_back(layout_traits(view, kind));
  planned = plan_layouts(kind, planned, traits);
  blobs.resize(planned.blobs.size());
  views.clear();
  for (const GraphNode& node : planned.nodes) {
    const LayerView& view =
        views.emplace_back(node.is_reorder() ? add_reorder(node) : view_of(node));
    if (node.is_reorder()) SPEEDO_TRY(set_up_reorder(view));
    // Again, as layers that share memory with a bottom must do so with the one they have now.
    SPEEDO_TRY(shape_layer(view));
    for (const std::size_t top : node.tops) {
      blobs[top].tensor->set_layout(planned.blobs[top].layout);
    }
  }
  check_layouts();
  return {};
}

// Of a layer of the prototxt, as the planned graph has it.
Net::LayerView Net::Impl::view_of(const GraphNode& node) const {
  LayerView view = built[node.layer];
  view.bottoms.resize(node.bottoms.size());
  view.bottom_names.resize(node.bottoms.size());
  for (std::size_t i = 0; i < node.bottoms.size(); ++i) {
    const Blob& bottom = blobs[node.bottoms[i]];
    view.bottoms[i] = bottom.tensor.get();
    if (view.bottom_names[i].empty()) view.bottom_names[i] = bottom.name;
  }
  for (std::size_t i = 0; i < node.tops.size(); ++i) {
    view.tops[i] = blobs[node.tops[i]].tensor.get();
  }
  view.propagate = node.propagate;
  view.needs_backward = node.needs_backward;
  view.shapes_vary = node.shapes_vary;
  view.fused = node.fused;
  return view;
}

// Makes a Reorder layer and the tensors that it writes.
Net::LayerView Net::Impl::add_reorder(const GraphNode& node) {
  LayerView view{};
  for (std::size_t i = 0; i < node.tops.size(); ++i) {
    const Blob& source = blobs[node.bottoms[i]];
    Blob& target = blobs[node.tops[i]];
    target = {fmt::format("{}_reorder", source.name), std::make_unique<Tensor>()};
    view.bottoms.push_back(source.tensor.get());
    view.bottom_names.push_back(source.name);
    view.tops.push_back(target.tensor.get());
    view.top_names.push_back(target.name);
  }
  caffe::LayerParameter message;
  message.set_name(view.top_names[0]);
  message.set_type("Reorder");
  const Layout layout = planned.blobs[node.tops[0]].layout;
  view.layer = reorders.emplace_back(std::make_unique<ReorderLayer>(message, layout)).get();
  view.propagate = node.propagate;
  view.needs_backward = node.needs_backward;
  view.is_reorder = true;
  return view;
}

Result<void> Net::Impl::set_up_reorder(const LayerView& view) const {
  LayerContext context;
  context.backend = options.backend;
  context.phase = options.phase;
  context.plan_only = options.plan_only;
  return view.layer->setup(context, view.bottoms, view.tops);
}

// Tensors are as the plan has them, and share memory as it says.
void Net::Impl::check_layouts() const {
  Renumbering values, gradients;
  for (std::size_t i = 0; i < blobs.size(); ++i) {
    const Tensor& tensor = *blobs[i].tensor;
    const GraphBlob& blob = planned.blobs[i];
    SPEEDO_ASSERT(tensor.shape() == blob.shape && tensor.layout() == blob.layout);
    SPEEDO_ASSERT(values.agree(tensor.data_identity(), blob.values));
    SPEEDO_ASSERT(gradients.agree(tensor.grad_identity(), blob.gradient));
  }
}

}  // namespace speedo
