#include "data/epoch_order.hpp"

#include <numeric>
#include <utility>

#include <speedo/base/random.hpp>

namespace speedo {

namespace {

// Threads that read ahead work on both sides of an epoch's end.
constexpr std::size_t kKeptEpochs = 3;

}  // namespace

std::shared_ptr<const std::vector<std::uint32_t>> EpochOrder::of(std::uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  for (auto place = kept_.begin(); place != kept_.end(); ++place) {
    if (place->epoch != epoch) continue;
    kept_.splice(kept_.begin(), kept_, place);
    return kept_.front().order;
  }
  auto order = std::make_shared<std::vector<std::uint32_t>>(record_count_);
  std::iota(order->begin(), order->end(), 0U);
  constexpr std::uint64_t kOrderStream = 0x6f72646572;  // apart from those of mirrors and crops
  Random random = Random::derive(seed_, {kOrderStream, epoch});
  for (std::size_t left = order->size(); left > 1; --left) {
    std::swap((*order)[left - 1], (*order)[static_cast<std::size_t>(random.below(left))]);
  }
  kept_.push_front({epoch, std::move(order)});
  if (kept_.size() > kKeptEpochs) kept_.pop_back();
  return kept_.front().order;
}

}  // namespace speedo
