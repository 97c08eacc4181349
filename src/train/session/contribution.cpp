#include "train/session/contribution.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>

namespace speedo {

std::uint64_t staleness_of(const Contribution& contribution, Version newest) {
  return newest > contribution.base ? newest.value - contribution.base.value : 0;
}

float merge_share(const Contribution& contribution, const MergeOrder& merge,
                  const Schedule& schedule) {
  if (!merge.mean || is_elastic(schedule.update.kind)) return 1.0F;
  std::uint64_t shards = 0;
  for (const Contribution& each : merge.contributions) shards += each.data.count;
  SPEEDO_ASSERT(shards >= merge.contributions.size());  // each run trains at least one
  return static_cast<float>(
      static_cast<double>(contribution.data.count * merge.contributions.size()) /
      static_cast<double>(shards));
}

float merge_weight(const Contribution& contribution, const MergeOrder& merge,
                   const Schedule& schedule, Version newest) {
  double weight = contribution.weight;
  if (schedule.weight_by_staleness) {
    weight /= 1.0 + static_cast<double>(staleness_of(contribution, newest));
  }
  if (merge.mean && is_elastic(schedule.update.kind)) {
    const double whole = static_cast<double>(schedule.update.moving_rate) *
                         static_cast<double>(merge.contributions.size());
    weight /= std::max(whole, 1.0);
  }
  return static_cast<float>(weight * merge_share(contribution, merge, schedule));
}

}  // namespace speedo
