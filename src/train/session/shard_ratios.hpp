#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <speedo/base/ids.hpp>

namespace speedo {

// Shares of a round by the user's ratios: whole shards, which come to the ratio over the rounds.
class ShardRatios {
 public:
  // By names of workers or hosts; who is not named has 1. Requires: from 1 to kShardsPerRunMax.
  explicit ShardRatios(std::map<std::string, double> ratios) : ratios_(std::move(ratios)) {}

  bool is_empty() const { return ratios_.empty(); }
  std::set<std::string> names() const;
  // Shards of the next run of the worker of that name, 1 at least.
  std::uint64_t next(WorkerId worker, const std::string& name);
  // The worker is gone.
  void remove(WorkerId worker) { owed_.erase(worker); }

 private:
  double ratio_of(const std::string& name) const;

  std::map<std::string, double> ratios_;
  std::map<WorkerId, double> owed_;  // parts of a shard that earlier runs were short of, below 1
};

}  // namespace speedo
