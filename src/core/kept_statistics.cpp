#include "core/kept_statistics.hpp"

#include <speedo/backend/backend.hpp>
#include <speedo/core/net.hpp>

namespace speedo {

KeptStatistics::KeptStatistics(Net& net) : net_(net) {
  for (const ParameterSlot& slot : net.layout().slots()) {
    if (!slot.is_statistic) continue;
    kept_.push_back({slot.offset, std::vector<float>(static_cast<std::size_t>(slot.count()))});
  }
}

void KeptStatistics::keep() {
  for (Kept& kept : kept_) {
    net_.backend().device().download(kept.values, net_.weights().data() + kept.offset);
  }
}

void KeptStatistics::restore() {
  for (const Kept& kept : kept_) {
    net_.backend().device().upload(net_.weights().data() + kept.offset, kept.values);
  }
}

void KeptStatistics::put_change_into_gradients() {
  for (const Kept& kept : kept_) {
    change_.resize(kept.values.size());
    net_.backend().device().download(change_, net_.weights().data() + kept.offset);
    for (std::size_t i = 0; i < change_.size(); ++i) change_[i] = kept.values[i] - change_[i];
    net_.backend().device().upload(net_.gradients().data() + kept.offset, change_);
  }
}

}  // namespace speedo
