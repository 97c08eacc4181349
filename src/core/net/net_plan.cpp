// From a net whose shapes are known to one that can run: asks layers what plans want to know of
// them, and does what plans say. All that a plan adds can be taken away again, for other shapes.
#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>

#include "core/net/layer_traits.hpp"
#include "core/net/net_impl.hpp"
#include "core/plan/shape_plan.hpp"
#include "core/plan/slope_plan.hpp"

namespace speedo {
namespace {

std::vector<Shape> shapes_of(const std::vector<Tensor*>& tensors) {
  std::vector<Shape> shapes;
  for (const Tensor* tensor : tensors) shapes.push_back(tensor->shape());
  return shapes;
}

}  // namespace

Result<void> Net::Impl::plan() {
  planned = graph;
  note_shapes();
  fuse_layers();
  if (options.trains) {
    part_in_place_layers();
    leave_out_slopes();
  }
  SPEEDO_TRY(lay_out_blobs());
  SPEEDO_TRY(prepare_layers());
  SPEEDO_TRY(place_blobs());
  note_sole_writers();
  note_slots();
  return {};
}

void Net::Impl::forget_plan() {
  // Passes that are queued use the memory that goes.
  options.backend->device().synchronize();
  planned = graph;
  blobs.erase(blobs.begin() + static_cast<std::ptrdiff_t>(graph.blobs.size()), blobs.end());
  for (std::size_t i = 0; i < blobs.size(); ++i) {
    blob_index.at(blobs[i].name) = i;
    blobs[i].tensor->place_data(nullptr);
    blobs[i].tensor->place_grad(nullptr);
  }
  views.clear();
  for (const GraphNode& node : planned.nodes) views.push_back(view_of(node));
  reorders.clear();
  node_slots.clear();
  followed_shapes.clear();
  memory = {};
}

Result<void> Net::Impl::reshape() {
  forget_plan();
  for (const LayerView& view : built) {
    SPEEDO_TRY(shape_layer(view));
  }
  for (const Expansion& expansion : expansions) {
    SPEEDO_TRY(check_expansion(expansion));
  }
  return plan();
}

// Before a forward pass: batches of other shapes need another plan. So does a net without one,
// which the batch before could not be given.
Result<void> Net::Impl::follow_batches() {
  bool differs = node_slots.size() != views.size();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    auto this_differs = layers[i]->next_batch_differs(built[i].tops);
    if (!this_differs) return with_sources(std::move(this_differs).error(), messages);
    differs = differs || *this_differs;
  }
  if (!differs) return {};
  const std::vector<KeptInput> inputs = keep_inputs();
  if (const auto reshaped = reshape(); !reshaped) {
    return Error{reshaped.error().code,
                 fmt::format("{} (the data are {})", reshaped.error().message, batch_shapes())};
  }
  for (const KeptInput& input : inputs) input.blob->set_values(*options.backend, input.values);
  return {};
}

// Who gave them does not know of the plan that moves them.
std::vector<Net::Impl::KeptInput> Net::Impl::keep_inputs() const {
  std::vector<KeptInput> inputs;
  for (const LayerView& view : built) {
    if (view.layer->type() != "Input") continue;
    for (Tensor* const blob : view.tops) {
      if (blob->has_data()) inputs.push_back({blob, blob->values(*options.backend)});
    }
  }
  return inputs;
}

bool Net::Impl::batches_vary() const {
  return std::ranges::any_of(layers, [](const auto& layer) { return layer->batches_vary(); });
}

// For a message: what data layers whose batches vary bring next.
std::string Net::Impl::batch_shapes() const {
  std::vector<std::string> shapes;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i]->batches_vary()) continue;
    for (const Tensor* top : built[i].tops) shapes.push_back(to_string(top->shape()));
  }
  return fmt::format("{}", fmt::join(shapes, ", "));
}

void Net::Impl::note_shapes() {
  for (std::size_t i = 0; i < blobs.size(); ++i) {
    planned.blobs[i].shape = blobs[i].tensor->shape();
  }
  std::vector<bool> learns_shapes;
  for (const auto& layer : layers) learns_shapes.push_back(layer->shapes_tops_in_forward());
  const std::vector<bool> varying = find_varying_shapes(planned, learns_shapes);
  for (std::size_t i = 0; i < varying.size(); ++i) planned.nodes[i].shapes_vary = varying[i];
}

bool Net::Impl::is_looked_at(std::size_t blob) const {
  return options.keep_blobs ||
         std::count(options.kept_blobs.begin(), options.kept_blobs.end(), blobs[blob].name) > 0;
}

void Net::Impl::fuse_layers() {
  std::vector<bool> keeps_bottom;
  for (const auto& layer : layers) keeps_bottom.push_back(layer->keeps_bottom());
  const auto offer = [this](std::size_t layer, std::size_t next, const FusionTerms& terms) {
    // What is joined is not made any more where it was.
    const bool is_asked_for = terms.joins && is_looked_at(planned.nodes[layer].tops[0]);
    if (!options.may_fuse || is_asked_for) return Fused{};
    return layers[layer]->fuse(*layers[next], terms);
  };
  fusion = plan_fusion(planned, keeps_bottom, options.trains, offer);
  apply_fusion(fusion, planned);
}

// Who looks at the gradient of a blob that was parted sees what the last layer, the first in the
// prototxt, leaves there.
void Net::Impl::part_in_place_layers() {
  std::vector<InPlaceTraits> traits;
  for (const LayerView& view : built) traits.push_back(in_place_traits(view));
  InPlacePlan parted = plan_in_place(std::move(planned), traits);
  planned = std::move(parted.graph);
  const bool is_looked_at = options.keep_blobs || !options.kept_blobs.empty();
  for (const OwnTop& own : parted.own_tops) {
    SPEEDO_ASSERT(own.after == blobs.size());
    const Blob& before = blobs[own.before];
    auto tensor = std::make_unique<Tensor>(before.tensor->shape());
    // They cannot share it, as they may get different layouts.
    const bool propagates = planned.nodes[own.node].propagate[0];
    if (is_looked_at && propagates) tensor->show_gradients_of(*before.tensor);
    blob_index.at(before.name) = own.after;
    blobs.push_back({before.name, std::move(tensor)});
  }
}

// Activations whose slope their result tells, and which the layer behind applies.
void Net::Impl::leave_out_slopes() {
  for (const auto& layer : layers) layer->apply_slope(std::nullopt);
  if (!options.may_fuse) return;
  const auto offer = [this](std::size_t layer, std::size_t before) {
    const std::optional<UnaryOp> op = layers[before]->activation();
    const bool is_told = op && backward_reads(*op) == BackwardReads{.src = false, .dst = true};
    return is_told && layers[layer]->apply_slope(op);
  };
  for (const std::size_t node : plan_slopes(planned, offer)) {
    planned.nodes[node].fused.backward = true;
  }
}

Result<void> Net::Impl::prepare_layers() {
  for (const LayerView& view : views) {
    followed_shapes.push_back(shapes_of(view.bottoms));
    if (view.fused.forward && view.fused.backward) {
      continue;
    }
    SPEEDO_TRY(view.layer->prepare(view.bottoms, view.tops, options.trains && view.needs_backward));
  }
  return options.plan_only ? Result<void>() : options.backend->provide_scratch();
}

// Before a forward pass. Other shapes than the last time need other operations, but no more room:
// the first ones, for which the memory was planned, are the largest.
Result<void> Net::Impl::follow_shapes(std::size_t node) {
  const LayerView& view = views[node];
  if (!view.shapes_vary || followed_shapes[node] == shapes_of(view.bottoms)) return {};
  followed_shapes[node].clear();
  options.backend->device().synchronize();  // What is queued may use the operations that go.
  SPEEDO_TRY(shape_layer(view));
  SPEEDO_TRY(view.layer->prepare(view.bottoms, view.tops, options.trains && view.needs_backward));
  followed_shapes[node] = shapes_of(view.bottoms);
  return {};
}

void Net::Impl::note_slots() {
  for (const GraphNode& node : planned.nodes) {
    NodeSlots& slots = node_slots.emplace_back();
    if (node.is_reorder()) continue;
    std::vector<std::size_t> users = fusion.taken_over[node.layer];  // layers
    users.push_back(node.layer);
    for (const std::size_t layer : users) {
      if (!own_slots[layer].is_empty()) slots.needed.push_back(own_slots[layer]);
    }
    // Those that it does the backward pass of come before it, the last one first.
    std::reverse(users.begin(), users.end() - 1);
    for (const std::size_t layer : users) {
      const bool runs_here = layer == node.layer || fusion.fused[layer].backward;
      if (runs_here && !own_slots[layer].is_empty()) slots.final.push_back(own_slots[layer]);
    }
  }
}

// Outputs and what others look at between the passes.
BlobsToKeep Net::Impl::blobs_to_keep() const {
  BlobsToKeep kept;
  for (const std::string& output : output_names) {
    kept.after_forward.push_back(blob_index.at(output));
  }
  for (std::size_t i = 0; i < blobs.size(); ++i) {
    if (is_looked_at(i)) kept.always.push_back(i);
  }
  return kept;
}

Result<void> Net::Impl::place_blobs() {
  std::vector<MemoryTraits> traits;
  for (const LayerView& view : views) traits.push_back(memory_traits(view, options.trains));
  const MemoryPlan plan = plan_memory(planned, traits, options.trains, blobs_to_keep());
  constexpr std::int64_t kFloatBytes = sizeof(float);
  memory.blob_bytes = plan.floats * kFloatBytes;
  memory.unshared_bytes = plan.unshared_floats * kFloatBytes;
  if (options.plan_only) {
    return {};
  }
  const auto bytes = static_cast<std::size_t>(memory.blob_bytes);
  if (blob_memory.bytes() < bytes) {
    blob_memory = {};  // the device need not have room for both
    SPEEDO_ASSIGN(blob_memory, options.backend->device().allocate(bytes));
  } else {
    options.backend->fill(plan.floats, 0.0F, blob_memory.as_floats());
  }
  for (const MemoryPlan::Place& place : plan.places) {
    Tensor& tensor = *blobs[place.blob].tensor;
    float* const values = blob_memory.as_floats() + place.offset;
    place.is_grad ? tensor.place_grad(values) : tensor.place_data(values);
  }
  return {};
}

}  // namespace speedo
