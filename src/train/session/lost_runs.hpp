#pragma once

#include <optional>
#include <set>
#include <vector>

#include <speedo/base/ids.hpp>

#include "train/session/contribution.hpp"

namespace speedo {

// A round's merge that was put off, as the store has lost some of its contributions: their workers
// do the same runs again, on the same data and from the same weights, and it is made then. The
// others stay where they are; each keeps its place in the mean.
//
// Invariant: who is awaited has a contribution in the merge: the lost one, until the new one comes.
// Thread safety: one thread.
class LostRuns {
 public:
  // Requires: nothing is under way; all of `lost` have contributions in `merge`.
  void begin(MergeOrder merge, std::set<WorkerId> lost);
  bool is_under_way() const { return merge_.has_value(); }
  // Whose run was not ordered again yet, with what was lost: they are now.
  std::vector<Contribution> take_unordered();
  bool awaits(WorkerId worker) const { return awaited_.contains(worker); }
  // Requires: it is awaited.
  void report(const Contribution& contribution);
  // It will not come: the merge is made without it. What was lost, if its run was not ordered
  // again. Not an error: it is not awaited.
  std::optional<Contribution> give_up(WorkerId worker);
  // The merge, once nobody is awaited; it is under way no more. It may have nothing left.
  std::optional<MergeOrder> take_complete();
  bool takes_part(WorkerId worker) const;
  // Training ends: the merge is not made.
  void clear();

 private:
  std::vector<Contribution>::iterator of(WorkerId worker);

  std::optional<MergeOrder> merge_;
  std::set<WorkerId> awaited_, unordered_;
};

}  // namespace speedo
