#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <speedo/base/ids.hpp>
#include <speedo/train/merge_job.hpp>
#include <speedo/train/schedule.hpp>
#include <speedo/train/strategy.hpp>

#include "train/session/shard_leases.hpp"

namespace speedo {

// A contribution that lies in the store, as its worker reported it.
struct Contribution {
  WorkerId worker;
  RunId run;
  float loss = 0.0F;
  Version base;  // the weights that it was computed from
  std::uint64_t samples = 0;
  ShardRange data;
  float weight = 1.0F;  // that the strategy gave it
};

// One merge as the strategy ordered it.
struct MergeOrder {
  std::vector<Contribution> contributions;
  bool mean = false;  // divide by their number
};

inline bool is_among(const std::vector<WorkerId>& workers, WorkerId worker) {
  return std::ranges::find(workers, worker) != workers.end();
}

// The order that a mean is taken in: as the workers of a round that nobody left would have it.
void sort_by_data(std::vector<Contribution>& contributions);

// Updates merged since the weights that the contribution was computed from.
std::uint64_t staleness_of(const Contribution& contribution, Version newest);

// The contributions of `merge`, whose stage has this schedule, in their order. What each has of a
// mean, which is one over samples: shares are as the shards, and come to the number of
// contributions; elastic steps are summed, and a worker takes back just what it gave: 1. And its
// weight: its share, and what the strategy and its staleness make of it. Elastic steps of a round
// that would move the centre further than to the mean of the workers are so much shorter: beyond,
// it would swing about it (Zhang, Choromanska, LeCun 2015: p a <= 1).
std::vector<MergeJob::Contribution> weighed(const MergeOrder& merge, const Schedule& schedule,
                                            Version newest);

}  // namespace speedo
