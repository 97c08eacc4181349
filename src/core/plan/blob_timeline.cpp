#include "core/plan/blob_timeline.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/assert.hpp>

#include "core/plan/memory_packing.hpp"

namespace speedo {
namespace {

constexpr std::int64_t kBlockFloats = 64 / sizeof(float);

std::int64_t in_blocks(std::int64_t floats) {
  return std::max<std::int64_t>(1, (floats + kBlockFloats - 1) / kBlockFloats);
}

}  // namespace

BlobTimeline::BlobTimeline(const NetGraph& graph)
    : graph_(graph),
      of_values_(graph.blobs.size(), kNone),
      of_gradients_(graph.blobs.size(), kNone) {}

std::size_t& BlobTimeline::known_array(std::size_t blob, bool is_grad) {
  const GraphBlob& it = graph_.blobs[blob];
  return is_grad ? of_gradients_[it.gradient] : of_values_[it.values];
}

std::size_t BlobTimeline::array_of(std::size_t blob, bool is_grad) {
  std::size_t& known = known_array(blob, is_grad);
  if (known == kNone) {
    known = arrays_.size();
    arrays_.push_back({blob, is_grad, false, {}, 0});
  }
  Array& array = arrays_[known];
  if (graph_.blobs[blob].storage_floats() > size_of(array)) array.blob = blob;
  return known;
}

void BlobTimeline::use(std::size_t blob, bool is_grad, int step, bool is_write) {
  std::vector<Use>& uses = arrays_[array_of(blob, is_grad)].uses;
  SPEEDO_ASSERT(uses.empty() || uses.back().step <= step);
  uses.push_back({step, is_write});
}

void BlobTimeline::forward(std::size_t node, const MemoryTraits& traits) {
  const GraphNode& it = graph_.nodes[node];
  const auto step = static_cast<int>(node);
  if (!it.fused.forward) {
    for (const std::size_t bottom : it.bottoms) use(bottom, false, step, false);
    for (const std::size_t top : it.tops) use(top, false, step, true);
  }
  for (std::size_t i = 0; i < it.tops.size(); ++i) {
    if (it.loss_weights[i] == 0.0F) continue;
    use(it.tops[i], false, step, false);
    if (graph_.blobs[it.tops[i]].shape.count() != 1) use(it.tops[i], true, step, true);
  }
  if (!traits.keeps_tops) return;
  for (const std::size_t top : it.tops) keep(top, false);
}

void BlobTimeline::begin_backward(std::size_t node) {
  const GraphNode& it = graph_.nodes[node];
  for (std::size_t i = 0; i < it.tops.size(); ++i) {
    if (it.loss_weights[i] == 0.0F) continue;
    use(it.tops[i], true, static_cast<int>(graph_.nodes.size()), true);
  }
}

void BlobTimeline::backward(std::size_t node, const MemoryTraits& traits) {
  const GraphNode& it = graph_.nodes[node];
  if (!it.needs_backward || it.fused.backward) return;
  const int step = backward_step(node);
  for (std::size_t i = 0; i < it.tops.size(); ++i) {
    use(it.tops[i], true, step, false);
    if (traits.backward_reads_top[i]) use(it.tops[i], false, step, false);
  }
  for (std::size_t i = 0; i < it.bottoms.size(); ++i) {
    if (traits.backward_reads_bottom[i]) use(it.bottoms[i], false, step, false);
    if (it.propagate[i]) use(it.bottoms[i], true, step, true);
  }
}

void BlobTimeline::keep(std::size_t blob, bool with_grad) {
  arrays_[array_of(blob, false)].is_kept = true;
  if (with_grad) arrays_[array_of(blob, true)].is_kept = true;
}

void BlobTimeline::keep_from_now(std::size_t blob, bool is_grad) {
  use(blob, is_grad, last_step(), false);
}

bool BlobTimeline::is_written(const Array& array) {
  return std::any_of(array.uses.begin(), array.uses.end(),
                     [](const Use& use) { return use.is_write; });
}

// What is read before it is written in the same pass must hold zeros, or what the pass before left:
// nothing else may be there.
void BlobTimeline::make_groups() {
  for (Array& array : arrays_) {
    array.group = groups_.size();
    Group group;
    group.floats = size_of(array);
    group.is_fixed = array.is_kept || array.uses.empty() || is_read_first(array);
    group.first = group.is_fixed ? 0 : array.uses.front().step;
    group.last = group.is_fixed ? last_step() : array.uses.back().step;
    groups_.push_back(group);
  }
}

// Whether the layer at `step` may make the one array of the other, in its place: nobody needs the
// one afterwards, or the other before.
bool BlobTimeline::may_join(std::size_t before, std::size_t after, int step) const {
  const Group& from = groups_[arrays_[before].group];
  const Group& to = groups_[arrays_[after].group];
  return &from != &to && !from.is_fixed && !to.is_fixed && from.floats == to.floats &&
         from.last == step && to.first == step;
}

void BlobTimeline::join(std::size_t before, std::size_t after) {
  const std::size_t from = arrays_[before].group, to = arrays_[after].group;
  groups_[from].last = std::max(groups_[from].last, groups_[to].last);
  for (Array& array : arrays_) {
    if (array.group == to) array.group = from;
  }
}

void BlobTimeline::share_values(std::size_t node, const MemoryTraits& traits) {
  const GraphNode& it = graph_.nodes[node];
  if (it.fused.forward || it.shapes_vary) return;
  if (groups_.empty()) make_groups();
  for (std::size_t b = 0; b < it.bottoms.size(); ++b) {
    // Read twice, it cannot be written in between.
    const std::size_t bottom = known_array(it.bottoms[b], false);
    const auto is_same = [&](std::size_t other) { return known_array(other, false) == bottom; };
    if (std::count_if(it.bottoms.begin(), it.bottoms.end(), is_same) > 1) continue;
    for (std::size_t t = 0; t < it.tops.size(); ++t) {
      const std::size_t top = known_array(it.tops[t], false);
      const bool is_allowed = traits.values_may_share[b][t];
      if (!is_allowed || !may_join(bottom, top, static_cast<int>(node))) continue;
      join(bottom, top);
      return;
    }
  }
}

void BlobTimeline::share_gradients(std::size_t node, const MemoryTraits& traits) {
  const GraphNode& it = graph_.nodes[node];
  if (!it.needs_backward || it.fused.backward || it.shapes_vary) return;
  if (groups_.empty()) make_groups();
  const int step = backward_step(node);
  std::vector<std::pair<std::size_t, std::size_t>> possible;  // top, bottom
  for (std::size_t b = 0; b < it.bottoms.size(); ++b) {
    if (!it.propagate[b]) continue;
    const std::size_t bottom = known_array(it.bottoms[b], true);
    for (std::size_t t = 0; t < it.tops.size(); ++t) {
      const std::size_t top = known_array(it.tops[t], true);
      const bool is_allowed = traits.gradients_may_share[b][t];
      if (is_allowed && may_join(top, bottom, step)) possible.emplace_back(top, bottom);
    }
  }
  if (possible.empty()) return;
  // Of several bottoms, those whose gradient is only read from now on can all be the top's.
  const auto is_written_later = [&](const std::pair<std::size_t, std::size_t>& pair) {
    const std::vector<Use>& uses = arrays_[pair.second].uses;
    return std::any_of(uses.begin(), uses.end(),
                       [step](const Use& use) { return use.is_write && use.step > step; });
  };
  const auto read_only = std::stable_partition(possible.begin(), possible.end(), is_written_later);
  if (it.bottoms.size() == 1 || read_only == possible.end()) {
    join(possible.front().first, possible.front().second);
    return;
  }
  for (auto pair = read_only; pair != possible.end(); ++pair) join(pair->first, pair->second);
}

// Gives each group that somebody writes its place, and the others the room behind these: nobody
// writes them, so all can be one.
void BlobTimeline::place_groups(const std::vector<bool>& is_used, MemoryPlan& plan) {
  std::vector<Lifetime> lifetimes;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const Group& group = groups_[i];
    if (is_used[i]) lifetimes.push_back({in_blocks(group.floats), group.first, group.last});
  }
  const Packing packing = pack(lifetimes);
  std::size_t next = 0;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const std::int64_t block = is_used[i] ? packing.offsets[next++] : packing.size;
    groups_[i].offset = block * kBlockFloats;
  }
  plan.floats = packing.size * kBlockFloats;
}

MemoryPlan BlobTimeline::pack_arrays() {
  if (groups_.empty()) make_groups();
  MemoryPlan plan;
  std::vector<bool> is_used(groups_.size());
  std::int64_t zeros = 0;  // of arrays that nobody writes
  for (const Array& array : arrays_) {
    const std::int64_t floats = in_blocks(size_of(array)) * kBlockFloats;
    plan.unshared_floats += floats;
    if (array.is_kept || is_written(array)) {
      is_used[array.group] = true;
    } else {
      zeros = std::max(zeros, floats);
    }
  }
  place_groups(is_used, plan);
  plan.floats = std::max(kBlockFloats, plan.floats + zeros);
  for (const Array& array : arrays_) {
    plan.places.push_back({array.blob, array.is_grad, groups_[array.group].offset});
  }
  return plan;
}

}  // namespace speedo
