#pragma once

#include <cstdint>
#include <vector>

#include <speedo/base/ids.hpp>
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

// Updates merged since the weights that the contribution was computed from.
std::uint64_t staleness_of(const Contribution& contribution, Version newest);

// The weight of one contribution of `merge`, whose stage has this schedule. A mean divides by the
// number of contributions: those of more shards count for as many, so that it is the mean over
// samples. Elastic steps are summed, and a worker takes back just what it gave.
float merge_weight(const Contribution& contribution, const MergeOrder& merge,
                   const Schedule& schedule, Version newest);

}  // namespace speedo
