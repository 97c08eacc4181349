// From a net whose shapes are known to one that can run. Everything that a plan adds to the net as
// the prototxt has it can be taken away again, for other shapes.
#include <utility>

#include <speedo/backend/backend.hpp>

#include "core/net_impl.hpp"

namespace speedo {

Result<void> Net::Impl::plan() {
  unplanned = Graph{views, wiring, blob_index, blobs.size()};
  mark_varying_shapes();
  if (options.may_fuse) {
    fuse_layers();
  }
  if (options.trains) {
    part_in_place_layers();
  }
  SPEEDO_TRY(plan_layouts());
  SPEEDO_TRY(prepare_layers());
  note_planned_shapes();
  return plan_memory();
}

void Net::Impl::forget_plan() {
  if (!unplanned) {
    return;
  }
  // Passes that are queued use the memory that goes.
  options.backend->device().synchronize();
  for (Blob& blob : blobs) {
    blob.tensor->place_data(nullptr);
    blob.tensor->place_grad(nullptr);
  }
  views = std::move(unplanned->views);
  wiring = std::move(unplanned->wiring);
  blob_index = std::move(unplanned->blob_index);
  blobs.erase(blobs.begin() + static_cast<std::ptrdiff_t>(unplanned->blob_count), blobs.end());
  reorders.clear();
  blob_memory = {};
  memory = {};
  unplanned.reset();
}

Result<void> Net::Impl::prepare_layers() {
  for (const LayerView& view : views) {
    if (view.fused.forward && view.fused.backward) {
      continue;
    }
    SPEEDO_TRY(view.layer->prepare(view.bottoms, view.tops, options.trains && view.needs_backward));
  }
  return options.plan_only ? Result<void>() : options.backend->provide_scratch();
}

}  // namespace speedo
