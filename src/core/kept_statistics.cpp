#include "core/kept_statistics.hpp"

#include <iterator>
#include <utility>

#include <speedo/backend/backend.hpp>
#include <speedo/core/net.hpp>

namespace speedo {

KeptStatistics::KeptStatistics(Net& net) : net_(net) {
  for (const ParameterSlot& slot : net.layout().slots()) {
    if (!slot.is_statistic) continue;
    kept_.push_back({slot.offset, std::vector<float>(static_cast<std::size_t>(slot.count()))});
  }
}

Result<void> KeptStatistics::keep_on_device(DeviceSteps& steps) {
  std::vector<Buffer> buffers;
  for (const Kept& kept : kept_) {
    const std::size_t bytes = kept.values.size() * sizeof(float);
    SPEEDO_ASSIGN(Buffer buffer, net_.backend().device().allocate(bytes));
    buffers.push_back(std::move(buffer));
  }
  on_device_ = std::move(buffers);
  steps_ = &steps;
  return {};
}

void KeptStatistics::keep_on_host() {
  steps_ = nullptr;
  on_device_.clear();
}

void KeptStatistics::keep() {
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    std::vector<float>& values = kept_[i].values;
    const float* const weights = net_.weights().data() + kept_[i].offset;
    if (steps_ == nullptr) {
      net_.backend().device().download(values, weights);
    } else {
      steps_->keep(std::ssize(values), weights, on_device_[i].as_floats());
    }
  }
}

void KeptStatistics::restore() {
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const std::vector<float>& values = kept_[i].values;
    float* const weights = net_.weights().data() + kept_[i].offset;
    if (steps_ == nullptr) {
      net_.backend().device().upload(weights, values);
    } else {
      net_.backend().copy(std::ssize(values), on_device_[i].as_floats(), weights);
    }
  }
}

void KeptStatistics::put_change_into_gradients() {
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const Kept& kept = kept_[i];
    const float* const now = net_.weights().data() + kept.offset;
    float* const gradients = net_.gradients().data() + kept.offset;
    if (steps_ != nullptr) {
      net_.backend().zip({BinaryKind::kSum, 1.0F, -1.0F}, std::ssize(kept.values),
                         {on_device_[i].as_floats(), now, gradients});
      continue;
    }
    change_.resize(kept.values.size());
    net_.backend().device().download(change_, now);
    for (std::size_t k = 0; k < change_.size(); ++k) change_[k] = kept.values[k] - change_[k];
    net_.backend().device().upload(gradients, change_);
  }
}

}  // namespace speedo
