#include "core/plan/memory_plan.hpp"

#include <speedo/base/assert.hpp>

#include "core/plan/blob_timeline.hpp"

namespace speedo {
namespace {

void note_passes(const NetGraph& graph, std::span<const MemoryTraits> traits, bool trains,
                 BlobTimeline& timeline) {
  const std::size_t count = graph.nodes.size();
  for (std::size_t i = 0; i < count; ++i) timeline.forward(i, traits[i]);
  if (!trains) return;
  for (std::size_t i = 0; i < count; ++i) timeline.begin_backward(i);
  for (std::size_t i = count; i-- > 0;) timeline.backward(i, traits[i]);
}

void keep_blobs(const NetGraph& graph, std::span<const MemoryTraits> traits, bool trains,
                const BlobsToKeep& kept, BlobTimeline& timeline) {
  for (const std::size_t blob : kept.after_forward) timeline.keep_from_now(blob, false);
  for (const std::size_t blob : kept.always) {
    timeline.keep(blob, trains && graph.blobs[blob].needs_grad);
  }
  for (std::size_t i = 0; trains && i < graph.nodes.size(); ++i) {
    if (!traits[i].keeps_tops) continue;
    for (const std::size_t top : graph.nodes[i].tops) {
      if (graph.blobs[top].needs_grad) timeline.keep_from_now(top, true);
    }
  }
}

}  // namespace

MemoryPlan plan_memory(const NetGraph& graph, std::span<const MemoryTraits> traits, bool trains,
                       const BlobsToKeep& kept) {
  SPEEDO_ASSERT(traits.size() == graph.nodes.size());
  BlobTimeline timeline(graph);
  note_passes(graph, traits, trains, timeline);
  keep_blobs(graph, traits, trains, kept, timeline);
  const std::size_t count = graph.nodes.size();
  for (std::size_t i = 0; i < count; ++i) timeline.share_values(i, traits[i]);
  for (std::size_t i = count; trains && i-- > 0;) timeline.share_gradients(i, traits[i]);
  return timeline.pack_arrays();
}

}  // namespace speedo
