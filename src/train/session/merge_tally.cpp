#include "train/session/merge_tally.hpp"

#include <algorithm>
#include <cstdint>

#include <speedo/base/assert.hpp>

namespace speedo {

void MergeTally::restore(std::uint64_t iteration, const Counts& counts) {
  first_iteration_ = iteration_ = iteration;
  counts_ = restored_ = counts;
}

// Staleness is by the version before this merge.
void MergeTally::merged(std::span<const Contribution> contributions, Version version) {
  SPEEDO_ASSERT(!contributions.empty());
  double loss_sum = 0.0, samples = 0.0;
  for (const Contribution& each : contributions) {
    const auto of_this = static_cast<double>(std::max<std::uint64_t>(each.samples, 1));
    loss_sum += each.loss * of_this;
    samples += of_this;
    counts_.samples += each.samples;
    counts_.staleness_sum += static_cast<double>(staleness_of(each, newest_));
  }
  counts_.merges += 1;
  counts_.contributions += contributions.size();
  last_loss_ = static_cast<float>(loss_sum / samples);
  iteration_ += 1;
  newest_ = version;
}

void MergeTally::show(MasterProgress& progress) const {
  progress.iteration = iteration_;
  progress.merges = counts_.merges;
  progress.contributions = counts_.contributions;
  progress.rejected = counts_.rejected;
  progress.discarded = counts_.discarded;
  progress.samples = counts_.samples;
  progress.staleness_sum = counts_.staleness_sum;
  progress.last_loss = last_loss_;
}

}  // namespace speedo
