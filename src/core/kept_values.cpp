#include "core/kept_values.hpp"

#include <iterator>
#include <utility>

#include <speedo/backend/backend.hpp>
#include <speedo/core/layer.hpp>
#include <speedo/core/net.hpp>
#include <speedo/core/tensor.hpp>

namespace speedo {

KeptValues::KeptValues(Net& net, Kind kind) : net_(net), kind_(kind) {}

template <class Visit>
void KeptValues::for_each(const Visit& visit) {
  std::size_t next = 0;
  const auto visit_next = [&](std::span<float> place) {
    if (next == kept_.size()) kept_.emplace_back();
    visit(kept_[next++], place);
  };
  for (const ParameterSlot& slot : net_.layout().slots()) {
    if (!slot.is_statistic) continue;
    visit_next({net_.weights().data() + slot.offset, static_cast<std::size_t>(slot.count())});
  }
  if (kind_ == Kind::kStatistics) return;
  for (const Net::LayerView& view : net_.layers()) {
    for (Tensor& carried : view.layer->carried_values()) {
      if (!carried.has_data()) continue;
      visit_next({carried.data(), static_cast<std::size_t>(carried.count())});
    }
  }
}

Result<void> KeptValues::keep_on_device(DeviceSteps& steps) {
  Result<void> provided;
  for_each([&](Kept& kept, std::span<float> place) {
    if (!provided) return;
    auto buffer = net_.backend().device().allocate(place.size_bytes());
    if (buffer) {
      kept.on_device = std::move(*buffer);
    } else {
      provided = std::move(buffer).error();
    }
  });
  if (!provided) {
    keep_on_host();
    return provided;
  }
  steps_ = &steps;
  return {};
}

void KeptValues::keep_on_host() {
  steps_ = nullptr;
  for (Kept& kept : kept_) kept.on_device = Buffer();
}

void KeptValues::keep() {
  copies_.clear();
  for_each([&](Kept& kept, std::span<float> place) {
    kept.count = place.size();
    if (steps_ == nullptr) {
      kept.values.resize(place.size());
      net_.backend().device().download(kept.values, place.data());
    } else if (kept.on_device.bytes() >= place.size_bytes()) {
      copies_.push_back({std::ssize(place), place.data(), kept.on_device.as_floats()});
    } else {
      kept.count = 0;
    }
  });
  if (!copies_.empty()) steps_->keep(copies_);
}

void KeptValues::restore() {
  for_each([&](Kept& kept, std::span<float> place) {
    if (kept.count != place.size()) return;
    if (steps_ == nullptr) {
      net_.backend().device().upload(place.data(), kept.values);
    } else {
      net_.backend().copy(std::ssize(place), kept.on_device.as_floats(), place.data());
    }
  });
}

void KeptValues::put_change_into_gradients() {
  std::size_t next = 0;
  for (const ParameterSlot& slot : net_.layout().slots()) {
    if (!slot.is_statistic) continue;
    const Kept& kept = kept_[next++];
    const float* const now = net_.weights().data() + slot.offset;
    float* const gradients = net_.gradients().data() + slot.offset;
    if (steps_ != nullptr) {
      net_.backend().zip({BinaryKind::kSum, 1.0F, -1.0F}, slot.count(),
                         {kept.on_device.as_floats(), now, gradients});
      continue;
    }
    change_.resize(kept.values.size());
    net_.backend().device().download(change_, now);
    for (std::size_t k = 0; k < change_.size(); ++k) change_[k] = kept.values[k] - change_[k];
    net_.backend().device().upload(gradients, change_);
  }
}

}  // namespace speedo
