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

Result<void> KeptValues::provide(Kept& kept, std::size_t count) {
  if (is_on_device(kept, count)) return {};
  SPEEDO_ASSIGN(kept.on_device, net_.backend().device().allocate(count * sizeof(float)));
  kept.count = 0;
  return {};
}

Result<void> KeptValues::guard(DeviceSteps& steps) {
  Result<void> provided;
  for_each([&](Kept& kept, std::span<float> place) {
    if (provided) provided = provide(kept, place.size());
  });
  SPEEDO_TRY(provided);
  steps_ = &steps;
  return {};
}

// Guarded, it may be recorded: no memory is taken then.
void KeptValues::keep() {
  Device& device = net_.backend().device();
  const bool may_take = steps_ == nullptr && device.memory() == MemoryKind::kDevice;
  copies_.clear();
  for_each([&](Kept& kept, std::span<float> place) {
    if (may_take) static_cast<void>(provide(kept, place.size()));
    kept.count = place.size();
    if (is_on_device(kept, place.size())) {
      copies_.push_back({std::ssize(place), place.data(), kept.on_device.as_floats()});
    } else if (steps_ != nullptr) {
      kept.count = 0;
    } else {
      kept.values.resize(place.size());
      device.download(kept.values, place.data());
    }
  });
  if (copies_.empty()) return;
  if (steps_ != nullptr) return steps_->keep(copies_);
  for (const DeviceSteps::Kept& copy : copies_) {
    net_.backend().copy(copy.n, copy.from, copy.to);
  }
}

void KeptValues::restore() {
  for_each([&](Kept& kept, std::span<float> place) {
    if (kept.count != place.size()) return;
    if (is_on_device(kept, place.size())) {
      net_.backend().copy(std::ssize(place), kept.on_device.as_floats(), place.data());
    } else {
      net_.backend().device().upload(place.data(), kept.values);
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
    if (is_on_device(kept, static_cast<std::size_t>(slot.count()))) {
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
