#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include <speedo/base/ids.hpp>

namespace speedo {

// Which share of the data stream each run trains on. A share is an ordinal; a worker holds one for
// its current run and one reserved for its next, so that it can read ahead. What a dead worker held
// is handed out again, smallest first: no share is skipped because its worker died.
//
// Invariant: an ordinal is free, held by one worker, or used up; once used up it is so for good.
class DataLeases {
 public:
  struct Lease {
    std::uint64_t current = 0, next = 0;
  };

  // Ordinals below `first` were used up by an earlier run of the job.
  explicit DataLeases(std::uint64_t first) : fresh_(first) {}

  // Leases for runs that start together: first every current ordinal in the order of `workers`,
  // then every next one. So n workers in step use r n .. r n + n - 1 in round r.
  // Requires: none of them holds a current ordinal.
  std::vector<Lease> start_runs(std::span<const WorkerId> workers);

  // The worker's run has ended with a report: its share is used up.
  void use_up(WorkerId worker);

  // The worker is gone: what it holds is free again. Not an error: it holds nothing.
  void give_back(WorkerId worker);

 private:
  struct Held {
    std::optional<std::uint64_t> current, next;
  };
  std::uint64_t take();

  std::map<WorkerId, Held> held_;
  std::set<std::uint64_t> returned_;
  std::uint64_t fresh_;
};

}  // namespace speedo
