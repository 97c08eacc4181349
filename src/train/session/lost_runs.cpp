#include "train/session/lost_runs.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo {

void LostRuns::begin(MergeOrder merge, std::set<WorkerId> lost) {
  SPEEDO_ASSERT(!merge_);
  merge_ = std::move(merge);
  awaited_ = unordered_ = std::move(lost);
  for (const WorkerId worker : awaited_) SPEEDO_ASSERT(takes_part(worker));
}

std::vector<Contribution> LostRuns::take_unordered() {
  std::vector<Contribution> all;
  for (const WorkerId worker : std::exchange(unordered_, {})) all.push_back(*of(worker));
  return all;
}

std::vector<Contribution>::iterator LostRuns::of(WorkerId worker) {
  const auto found = std::ranges::find(merge_->contributions, worker, &Contribution::worker);
  SPEEDO_ASSERT(found != merge_->contributions.end());
  return found;
}

void LostRuns::report(const Contribution& contribution) {
  const auto erased = awaited_.erase(contribution.worker);
  SPEEDO_ASSERT(erased == 1);
  Contribution& place = *of(contribution.worker);
  const float weight = place.weight;
  place = contribution;
  place.weight = weight;
}

std::optional<Contribution> LostRuns::give_up(WorkerId worker) {
  if (awaited_.erase(worker) == 0) return std::nullopt;
  const auto place = of(worker);
  const Contribution lost = *place;
  merge_->contributions.erase(place);
  return unordered_.erase(worker) == 1 ? std::optional(lost) : std::nullopt;
}

std::optional<MergeOrder> LostRuns::take_complete() {
  if (!merge_ || !awaited_.empty()) return std::nullopt;
  return std::exchange(merge_, std::nullopt);
}

bool LostRuns::takes_part(WorkerId worker) const {
  return merge_ && std::ranges::find(merge_->contributions, worker, &Contribution::worker) !=
                       merge_->contributions.end();
}

void LostRuns::clear() {
  merge_.reset();
  awaited_.clear();
  unordered_.clear();
}

}  // namespace speedo
