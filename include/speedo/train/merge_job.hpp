#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/ids.hpp>

namespace speedo {

// One merge in progress.
using MergeId = Id<struct MergeTag>;

// One merge into the master's weights: whose contributions, how, and what is published with it.
struct MergeJob {
  MergeId merge;
  std::uint64_t iteration;            // of the update rule
  struct Contribution {
    WorkerId worker;
    RunId run;
    float weight;
    // Its part of a mean of all: they come to the number of contributions, so that a mean of those
    // that are left when one is not taken divides by what comes of theirs.
    float share = 1.0F;
    bool operator==(const Contribution&) const = default;
  };
  std::vector<Contribution> contributions;
  bool mean;                          // divide by their shares (Average); elastic ones are summed
  std::uint32_t stage = 0;            // which UpdateSpec
  float lr_scale = 1.0F;              // on the rate of the master's rule
  std::string state;                  // of the session as of this merge, to publish with it
  // Training is over with it: a new master, whose workers have gone, has to find it in the store.
  bool is_last = false;
  // If the store has lost a contribution nothing is merged: its run is done again before, or the
  // state that is published says that its data are left.
  bool waits_for_lost = false;
  // Somebody will read the weights whole whom replicated updates do not serve.
  bool has_newcomers = false;
  bool operator==(const MergeJob&) const = default;
};

// Of what a merge has left out, what the store has lost: it is missing, damaged, or of another run.
template <class Merged>
std::vector<WorkerId> lost_in(const Merged& merged) {
  std::vector<WorkerId> lost = merged.rejected;
  for (const auto& others : {merged.not_finite, merged.outliers}) {
    std::erase_if(lost, [&](WorkerId each) { return std::ranges::count(others, each) > 0; });
  }
  return lost;
}

// Whether the merge was not made, and everything is as before.
template <class Merged>
bool is_put_off(const MergeJob& job, const Merged& merged) {
  return job.waits_for_lost && !lost_in(merged).empty();
}

// What a mean of these contributions is divided by.
inline float sum_of_shares(std::span<const MergeJob::Contribution> contributions) {
  float sum = 0.0F;
  for (const MergeJob::Contribution& each : contributions) sum += each.share;
  return sum;
}

}  // namespace speedo
