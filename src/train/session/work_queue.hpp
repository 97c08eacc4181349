#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include <speedo/base/ids.hpp>
#include <speedo/train/master_session.hpp>

#include "train/session/contribution.hpp"

namespace speedo {

// What the strategy has ordered and is not carried out yet, first in, first out, and the
// contributions that it has not decided on. A merge holds back all that was ordered after it until
// it is done, so that a worker is told to train only after the merges that were ordered before.
//
// Invariant: a contribution is in one place: undecided, in a queued merge, or in the merge in
// flight.
// Invariant: a worker has at most one undecided contribution.
// Invariant: at most one merge is in flight, and nothing is taken from the queue meanwhile.
// Thread safety: one thread.
class WorkQueue {
 public:
  enum class Head { kNothing, kTrain, kMerge };

  // A worker has reported it: the strategy is asked next.
  void report(const Contribution& contribution);
  // What the strategy orders. Requires: each worker has an undecided contribution.
  void merge(WorkerId worker, float weight);
  void average(std::span<const WorkerId> workers);
  Contribution discard(WorkerId worker);
  void train(WorkerId worker);
  // What was taken out and was put off comes before all that is ordered.
  void merge_first(MergeOrder merge) { queue_.emplace_front(std::move(merge)); }

  // What is to be carried out next. Requires: no merge is in flight.
  Head head() const;
  // The workers to train up to the next merge. Requires: head() is kTrain.
  std::vector<WorkerId> take_trains();
  // Requires: head() is kMerge.
  const MergeOrder& start_merge();
  bool is_merging() const { return in_flight_.has_value(); }
  const MergeOrder& in_flight() const;
  MergeId in_flight_id() const;
  MergeOrder end_merge(MergeId id);

  // A worker that is to train once training goes on: before all that is ordered meanwhile.
  void hold(WorkerId worker) { held_.push_back(worker); }
  void go_on();

  // A stage ends: nobody is told to train; merges stay.
  void drop_trains();
  std::vector<Contribution> take_undecided();
  std::vector<Contribution> undecided() const;
  std::uint64_t count_undecided() const { return undecided_.size(); }
  // Training ends: only the merge in flight stays.
  void clear();
  bool is_empty() const { return queue_.empty(); }
  // Nothing is ordered, held or undecided.
  bool is_clear() const { return queue_.empty() && held_.empty() && undecided_.empty(); }
  bool has_trains() const;

  // A worker is gone that may have left records in the store. It returns by take_unwanted(), once
  // no contribution of it is to be read any more.
  void worker_is_gone(WorkerId worker) { gone_.insert(worker); }
  std::vector<WorkerId> take_unwanted();
  // Whether a contribution of the worker may still be read.
  bool is_wanted(WorkerId worker) const;

 private:
  struct MergeInFlight {
    MergeId id;
    MergeOrder order;
  };
  Contribution take(WorkerId worker);

  std::map<WorkerId, Contribution> undecided_;
  std::deque<std::variant<MergeOrder, WorkerId>> queue_;  // merges, and workers to train
  std::deque<WorkerId> held_;
  std::optional<MergeInFlight> in_flight_;
  std::uint64_t next_merge_ = 0;
  std::set<WorkerId> gone_;
};

}  // namespace speedo
