#include "core/blob_timeline.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>

namespace speedo {
namespace {

constexpr std::int64_t kBlockElements = 64 / sizeof(float);

std::int64_t in_blocks(std::int64_t elements) {
  return std::max<std::int64_t>(1, (elements + kBlockElements - 1) / kBlockElements);
}

}  // namespace

std::size_t BlobTimeline::array_of(Tensor& tensor, bool is_grad) {
  const void* identity = is_grad ? tensor.grad_identity() : tensor.data_identity();
  const auto [known, is_new] = index_.emplace(identity, arrays_.size());
  if (is_new) arrays_.push_back({&tensor, is_grad, false, {}, 0});
  Array& array = arrays_[known->second];
  if (tensor.storage_count() > array.tensor->storage_count()) array.tensor = &tensor;
  return known->second;
}

void BlobTimeline::use(Tensor& tensor, bool is_grad, int step, bool is_write) {
  arrays_[array_of(tensor, is_grad)].uses.push_back({step, is_write});
}

void BlobTimeline::forward(std::size_t layer, const Net::LayerView& view,
                           const std::vector<float>& loss_weights) {
  const auto step = static_cast<int>(layer);
  if (!view.fused.forward) {
    for (Tensor* bottom : view.bottoms) use(*bottom, false, step, false);
    for (Tensor* top : view.tops) use(*top, false, step, true);
  }
  for (std::size_t i = 0; i < view.tops.size(); ++i) {
    if (loss_weights[i] == 0.0F) continue;
    use(*view.tops[i], false, step, false);
    if (view.tops[i]->count() != 1) use(*view.tops[i], true, step, true);
  }
  if (!view.layer->keeps_tops()) return;
  for (Tensor* top : view.tops) keep(*top, false);
}

void BlobTimeline::begin_backward(const Net::LayerView& view,
                                  const std::vector<float>& loss_weights) {
  for (std::size_t i = 0; i < view.tops.size(); ++i) {
    if (loss_weights[i] == 0.0F) continue;
    use(*view.tops[i], true, static_cast<int>(layer_count_), true);
  }
}

void BlobTimeline::backward(std::size_t layer, const Net::LayerView& view) {
  if (!view.needs_backward || view.fused.backward) return;
  const int step = last_step() - static_cast<int>(layer);
  for (std::size_t i = 0; i < view.tops.size(); ++i) {
    use(*view.tops[i], true, step, false);
    if (view.layer->backward_reads_top(static_cast<int>(i))) {
      use(*view.tops[i], false, step, false);
    }
  }
  for (std::size_t i = 0; i < view.bottoms.size(); ++i) {
    if (view.layer->backward_reads_bottom(static_cast<int>(i))) {
      use(*view.bottoms[i], false, step, false);
    }
    if (view.propagate[i]) use(*view.bottoms[i], true, step, true);
  }
}

void BlobTimeline::keep(Tensor& tensor, bool with_grad) {
  arrays_[array_of(tensor, false)].is_kept = true;
  if (with_grad) arrays_[array_of(tensor, true)].is_kept = true;
}

void BlobTimeline::keep_from_now(Tensor& tensor, bool is_grad) {
  use(tensor, is_grad, last_step(), false);
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
    group.elements = array.tensor->storage_count();
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
  return &from != &to && !from.is_fixed && !to.is_fixed && from.elements == to.elements &&
         from.last == step && to.first == step;
}

void BlobTimeline::join(std::size_t before, std::size_t after) {
  const std::size_t from = arrays_[before].group, to = arrays_[after].group;
  groups_[from].last = std::max(groups_[from].last, groups_[to].last);
  for (Array& array : arrays_) {
    if (array.group == to) array.group = from;
  }
}

void BlobTimeline::share_values(std::size_t layer, const Net::LayerView& view) {
  if (view.fused.forward || view.shapes_vary) return;
  if (groups_.empty()) make_groups();
  for (std::size_t b = 0; b < view.bottoms.size(); ++b) {
    // Read twice, it cannot be written in between.
    const void* values = view.bottoms[b]->data_identity();
    const auto is_same = [values](const Tensor* other) { return other->data_identity() == values; };
    if (std::count_if(view.bottoms.begin(), view.bottoms.end(), is_same) > 1) continue;
    for (std::size_t t = 0; t < view.tops.size(); ++t) {
      const std::size_t bottom = index_.at(values);
      const std::size_t top = index_.at(view.tops[t]->data_identity());
      const bool allowed = view.layer->values_may_share(static_cast<int>(b), static_cast<int>(t));
      if (!allowed || !may_join(bottom, top, static_cast<int>(layer))) continue;
      join(bottom, top);
      return;
    }
  }
}

void BlobTimeline::share_gradients(std::size_t layer, const Net::LayerView& view) {
  if (!view.needs_backward || view.fused.backward || view.shapes_vary) return;
  if (groups_.empty()) make_groups();
  const int step = last_step() - static_cast<int>(layer);
  std::vector<std::pair<std::size_t, std::size_t>> possible;  // top, bottom
  for (std::size_t b = 0; b < view.bottoms.size(); ++b) {
    if (!view.propagate[b]) continue;
    const std::size_t bottom = index_.at(view.bottoms[b]->grad_identity());
    for (std::size_t t = 0; t < view.tops.size(); ++t) {
      const std::size_t top = index_.at(view.tops[t]->grad_identity());
      const bool allowed =
          view.layer->gradients_may_share(static_cast<int>(b), static_cast<int>(t));
      if (allowed && may_join(top, bottom, step)) possible.emplace_back(top, bottom);
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
  if (view.bottoms.size() == 1 || read_only == possible.end()) {
    join(possible.front().first, possible.front().second);
    return;
  }
  for (auto pair = read_only; pair != possible.end(); ++pair) join(pair->first, pair->second);
}

BlobTimeline::Sizes BlobTimeline::pack_arrays() {
  if (groups_.empty()) make_groups();
  std::vector<bool> is_used(groups_.size());
  Sizes sizes;
  std::int64_t zeros = 0;  // of arrays that nobody writes: all can be one
  for (const Array& array : arrays_) {
    sizes.unshared_elements += in_blocks(array.tensor->storage_count()) * kBlockElements;
    if (array.is_kept || is_written(array)) {
      is_used[array.group] = true;
    } else {
      zeros = std::max(zeros, in_blocks(array.tensor->storage_count()));
    }
  }
  std::vector<Lifetime> lifetimes;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const Group& group = groups_[i];
    if (is_used[i]) lifetimes.push_back({in_blocks(group.elements), group.first, group.last});
  }
  const Packing packing = pack(lifetimes);
  std::size_t next = 0;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const std::int64_t block = is_used[i] ? packing.offsets[next++] : packing.size;
    groups_[i].offset = block * kBlockElements;
  }
  sizes.elements = std::max<std::int64_t>(1, packing.size + zeros) * kBlockElements;
  return sizes;
}

void BlobTimeline::place(float* memory) {
  for (const Array& array : arrays_) {
    float* place = memory + groups_[array.group].offset;
    array.is_grad ? array.tensor->place_grad(place) : array.tensor->place_data(place);
  }
}

}  // namespace speedo
