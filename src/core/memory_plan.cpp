// Memory for blobs: as much as is alive at once.
#include <algorithm>

#include <speedo/backend/backend.hpp>

#include "core/blob_timeline.hpp"
#include "core/net_impl.hpp"

namespace speedo {

BlobTimeline Net::Impl::make_timeline() const {
  BlobTimeline timeline(views.size());
  for (std::size_t i = 0; i < views.size(); ++i) {
    timeline.forward(i, views[i], wiring[i].loss_weights);
  }
  if (options.trains) {
    for (std::size_t i = 0; i < views.size(); ++i) {
      timeline.begin_backward(views[i], wiring[i].loss_weights);
    }
    for (std::size_t i = views.size(); i-- > 0;) {
      timeline.backward(i, views[i]);
    }
  }
  for (const std::string& output : output_names) {
    timeline.keep_from_now(*blobs[blob_index.at(output)].tensor, false);
  }
  return timeline;
}

// For those who look at blobs between the passes.
void Net::Impl::keep_blobs(BlobTimeline& timeline) const {
  for (const Blob& blob : blobs) {
    const bool is_asked_for =
        std::count(options.kept_blobs.begin(), options.kept_blobs.end(), blob.name) > 0;
    if (options.keep_blobs || is_asked_for) {
      timeline.keep(*blob.tensor, options.trains && blob.needs_grad);
    }
  }
  for (std::size_t i = 0; options.trains && i < views.size(); ++i) {
    for (const std::size_t top : wiring[i].tops) {
      if (views[i].layer->keeps_tops() && blobs[top].needs_grad) {
        timeline.keep_from_now(*blobs[top].tensor, true);
      }
    }
  }
}

Result<void> Net::Impl::plan_memory() {
  BlobTimeline timeline = make_timeline();
  keep_blobs(timeline);
  for (std::size_t i = 0; i < views.size(); ++i) {
    timeline.share_values(i, views[i]);
  }
  for (std::size_t i = views.size(); options.trains && i-- > 0;) {
    timeline.share_gradients(i, views[i]);
  }
  const BlobTimeline::Sizes sizes = timeline.pack_arrays();
  constexpr std::int64_t kElementBytes = sizeof(float);
  memory.blob_bytes = sizes.elements * kElementBytes;
  memory.unshared_bytes = sizes.unshared_elements * kElementBytes;
  if (options.plan_only) {
    return {};
  }
  SPEEDO_ASSIGN(blob_memory,
                options.backend->device().allocate(static_cast<std::size_t>(memory.blob_bytes)));
  timeline.place(blob_memory.as_floats());
  return {};
}

}  // namespace speedo
