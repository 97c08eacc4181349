#include "train/session/contribution.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>

namespace speedo {

void sort_by_data(std::vector<Contribution>& contributions) {
  std::ranges::sort(contributions, {}, [](const Contribution& each) { return each.data.first; });
}

std::uint64_t staleness_of(const Contribution& contribution, Version newest) {
  return newest > contribution.base ? newest.value - contribution.base.value : 0;
}

std::vector<MergeJob::Contribution> weighed(const MergeOrder& merge, const Schedule& schedule,
                                            Version newest) {
  const bool elastic = is_elastic(schedule.update.kind);
  const std::uint64_t count = merge.contributions.size();
  std::uint64_t shards = 0;
  for (const Contribution& each : merge.contributions) shards += each.data.count;
  // What a round's elastic steps come to.
  const double whole =
      static_cast<double>(schedule.update.moving_rate) * static_cast<double>(count);
  std::vector<MergeJob::Contribution> all;
  for (const Contribution& each : merge.contributions) {
    double weight = each.weight;
    float share = 1.0F;
    if (schedule.weight_by_staleness) {
      weight /= 1.0 + static_cast<double>(staleness_of(each, newest));
    }
    if (merge.mean && elastic) weight /= std::max(whole, 1.0);
    if (merge.mean && !elastic) {
      SPEEDO_ASSERT(shards >= count);  // each run trains at least one
      share = static_cast<float>(static_cast<double>(each.data.count * count) /
                                 static_cast<double>(shards));
    }
    all.push_back({each.worker, each.run, static_cast<float>(weight * share), share});
  }
  return all;
}

}  // namespace speedo
