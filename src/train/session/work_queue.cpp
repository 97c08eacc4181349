#include "train/session/work_queue.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo {

namespace {

bool takes_part(WorkerId worker, const MergeOrder& merge) {
  return std::ranges::any_of(merge.contributions,
                             [worker](const Contribution& each) { return each.worker == worker; });
}

}  // namespace

void WorkQueue::report(const Contribution& contribution) {
  const bool inserted = undecided_.emplace(contribution.worker, contribution).second;
  SPEEDO_ASSERT(inserted);
}

Contribution WorkQueue::take(WorkerId worker) {
  const auto found = undecided_.find(worker);
  SPEEDO_ASSERT(found != undecided_.end());  // A strategy decides on each contribution once.
  return undecided_.extract(found).mapped();
}

void WorkQueue::merge(WorkerId worker, float weight) {
  Contribution contribution = take(worker);
  contribution.weight = weight;
  queue_.emplace_back(MergeOrder{{contribution}, false});
}

void WorkQueue::average(std::span<const WorkerId> workers) {
  SPEEDO_ASSERT(!workers.empty());
  MergeOrder merge{{}, true};
  for (const WorkerId worker : workers) merge.contributions.push_back(take(worker));
  sort_by_data(merge.contributions);
  queue_.emplace_back(std::move(merge));
}

Contribution WorkQueue::discard(WorkerId worker) { return take(worker); }

void WorkQueue::train(WorkerId worker) { queue_.emplace_back(worker); }

WorkQueue::Head WorkQueue::head() const {
  SPEEDO_ASSERT(!is_merging());
  if (queue_.empty()) return Head::kNothing;
  return std::holds_alternative<WorkerId>(queue_.front()) ? Head::kTrain : Head::kMerge;
}

std::vector<WorkerId> WorkQueue::take_trains() {
  SPEEDO_ASSERT(head() == Head::kTrain);
  std::vector<WorkerId> workers;
  while (head() == Head::kTrain) {
    workers.push_back(std::get<WorkerId>(queue_.front()));
    queue_.pop_front();
  }
  return workers;
}

const MergeOrder& WorkQueue::start_merge() {
  SPEEDO_ASSERT(head() == Head::kMerge);
  in_flight_ = MergeInFlight{{next_merge_++}, std::get<MergeOrder>(std::move(queue_.front()))};
  queue_.pop_front();
  SPEEDO_ASSERT(!in_flight_->order.contributions.empty());
  return in_flight_->order;
}

const MergeOrder& WorkQueue::in_flight() const {
  SPEEDO_ASSERT(is_merging());
  return in_flight_->order;
}

MergeId WorkQueue::in_flight_id() const {
  SPEEDO_ASSERT(is_merging());
  return in_flight_->id;
}

MergeOrder WorkQueue::end_merge(MergeId id) {
  SPEEDO_ASSERT(in_flight_id() == id);
  MergeOrder merge = std::move(in_flight_->order);
  in_flight_.reset();
  return merge;
}

void WorkQueue::go_on() {
  queue_.insert(queue_.begin(), held_.begin(), held_.end());
  held_.clear();
}

void WorkQueue::drop_trains() {
  std::erase_if(queue_, [](const auto& each) { return std::holds_alternative<WorkerId>(each); });
  held_.clear();
}

std::vector<Contribution> WorkQueue::undecided() const {
  std::vector<Contribution> all;
  for (const auto& [worker, contribution] : undecided_) all.push_back(contribution);
  return all;
}

std::vector<Contribution> WorkQueue::take_undecided() {
  std::vector<Contribution> all = undecided();
  undecided_.clear();
  return all;
}

void WorkQueue::clear() {
  queue_.clear();
  held_.clear();
  undecided_.clear();
}

bool WorkQueue::has_trains() const {
  return !held_.empty() || std::ranges::any_of(queue_, [](const auto& each) {
    return std::holds_alternative<WorkerId>(each);
  });
}

bool WorkQueue::is_wanted(WorkerId worker) const {
  if (undecided_.contains(worker)) return true;
  if (in_flight_ && takes_part(worker, in_flight_->order)) return true;
  return std::ranges::any_of(queue_, [worker](const auto& each) {
    const auto* merge = std::get_if<MergeOrder>(&each);
    return merge != nullptr && takes_part(worker, *merge);
  });
}

std::vector<WorkerId> WorkQueue::take_unwanted() {
  std::vector<WorkerId> unwanted;
  for (const WorkerId worker : gone_) {
    if (!is_wanted(worker)) unwanted.push_back(worker);
  }
  for (const WorkerId worker : unwanted) gone_.erase(worker);
  return unwanted;
}

}  // namespace speedo
