#include "train/session/contribution.hpp"

#include <speedo/base/assert.hpp>

namespace speedo {

std::uint64_t staleness_of(const Contribution& contribution, Version newest) {
  return newest > contribution.base ? newest.value - contribution.base.value : 0;
}

float merge_weight(const Contribution& contribution, const MergeOrder& merge,
                   const Schedule& schedule, Version newest) {
  double weight = contribution.weight;
  if (schedule.weight_by_staleness) {
    weight /= 1.0 + static_cast<double>(staleness_of(contribution, newest));
  }
  if (merge.mean && !is_elastic(schedule.update.kind)) {
    std::uint64_t shards = 0;
    for (const Contribution& each : merge.contributions) shards += each.data.count;
    SPEEDO_ASSERT(shards >= merge.contributions.size());  // each run trains at least one
    weight *= static_cast<double>(contribution.data.count * merge.contributions.size()) /
              static_cast<double>(shards);
  }
  return static_cast<float>(weight);
}

}  // namespace speedo
