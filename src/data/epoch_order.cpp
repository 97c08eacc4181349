#include "data/epoch_order.hpp"

#include <utility>

#include "data/permute.hpp"

namespace speedo {

std::shared_ptr<const std::vector<std::uint32_t>> EpochOrder::of(std::uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  if (const Order* const found = kept_.find(epoch)) return *found;
  auto order = std::make_shared<std::vector<std::uint32_t>>();
  constexpr std::uint64_t kOrderStream = 0x6f72646572;  // apart from those of mirrors and crops
  permute(*order, record_count_, Random::derive(seed_, {kOrderStream, epoch}));
  return kept_.keep(epoch, std::move(order));
}

}  // namespace speedo
