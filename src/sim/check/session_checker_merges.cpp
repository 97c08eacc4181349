// What must hold of merges: which contributions they have, and what becomes of those that are not
// merged.

#include <algorithm>
#include <cmath>

#include "sim/check/session_checker.hpp"

namespace speedo::sim {
namespace {

std::vector<WorkerId> in_order(std::vector<WorkerId> workers) {
  std::ranges::sort(workers);
  return workers;
}

}  // namespace

// The worker of a run that is done again is gone, or the run came to nothing.
void SessionChecker::will_not_come(std::uint64_t worker) {
  if (again_.erase(worker) == 1) std::erase(put_off_, WorkerId{worker});
}

bool SessionChecker::has_to_train_again(std::uint64_t worker) const {
  const auto is_free = [&](const auto& each) {
    return each.second.worker == worker && each.second.ready && !each.second.run;
  };
  const bool in_rounds = find_strategy(config_.stages[stage_].strategy.name)->rounds;
  return in_rounds && !stopping_ && !is_stage_over() && std::ranges::any_of(incarnations_, is_free);
}

void SessionChecker::not_consumed(const Shards& shards) {
  for (std::uint64_t i = 0; i < shards.count; ++i) {
    lineage_.not_consumed(config_.term, shards.first + i);
  }
}

void SessionChecker::note_put_off(const master_event::Merged& e) {
  expect(kPublication, e.version.value == version_, "a merge that was put off made a version");
  for (const std::uint64_t run : merging_runs_) {
    const Contribution each = contributions_[run];
    const bool is_lost = std::ranges::count(e.rejected, WorkerId{each.worker}) > 0;
    const bool comes_again = is_lost && has_to_train_again(each.worker);
    if (!is_lost || comes_again) put_off_.push_back(WorkerId{each.worker});
    contributions_[run].fate = Fate::kPending;
    if (!is_lost) continue;
    contributions_.erase(run);
    not_consumed(each.shards);
    if (comes_again) {
      shards_.lost_by(each.worker, each.shards);
      again_.insert(each.worker);
    } else {
      shards_.lost(each.shards);
    }
  }
  merging_runs_.clear();
  merging_ = false;
}

void SessionChecker::note(const master_event::Merged& e) {
  weights_check_ = e.check;
  const std::vector<WorkerId> lost_of = lost_in(e);
  if (waits_for_lost_ && !lost_of.empty()) return note_put_off(e);
  const bool is_kept = is_elastic(config_.stages[stage_].update.kind);
  bool any = false;
  for (const std::uint64_t run : merging_runs_) {
    const Contribution each = contributions_[run];
    contributions_.erase(run);
    if (std::ranges::count(lost_of, WorkerId{each.worker}) > 0 && !is_kept) {
      not_consumed(each.shards);
      shards_.lost(each.shards);
      continue;
    }
    shards_.used(each.shards);
    if (std::ranges::find(e.rejected, WorkerId{each.worker}) != e.rejected.end()) continue;
    any = true;
    merged_contributions_ += 1;
    merged_of_[each.worker] = run;
  }
  merging_runs_.clear();
  merging_ = false;
  if (!any) return expect(kPublication, e.version.value == version_,
                          "a merge of nothing made a version");
  iteration_ += 1;
  merges_ += 1;
  expect(kPublication, e.version.value > version_, "versions do not grow");
  version_ = e.version.value;
}

void SessionChecker::obey(const master_command::StartMerge& c) {
  expect(kMerges, !merging_ && !entering_, "two merges at once");
  expect(kMerges, !stopping_, "a merge after the end");
  expect(kMerges, c.iteration == iteration_, "a merge at another iteration");
  expect(kMerges, c.stage == stage_, "a merge of another stage");
  expect(kMerges, !c.contributions.empty(), "an empty merge");
  expect(kMessages, c.state.size() < kPrototxtBytesMax, "a state without bounds");
  merging_ = true;
  std::vector<WorkerId> workers;
  for (const auto& each : c.contributions) workers.push_back(each.worker);
  if (put_off_.empty()) {
    const bool is_ordered =
        schedule_ == nullptr || in_order(schedule_->take_merge()) == in_order(workers);
    expect(kMerges, is_ordered, "not the merge that the schedule has ordered");
  } else {
    expect(kMerges, again_.empty() && put_off_ == workers, "not the merge that was put off");
    put_off_.clear();
  }
  const Schedule& schedule = config_.stages[c.stage];
  waits_for_lost_ = c.waits_for_lost;
  expect(kMerges, c.waits_for_lost == (c.mean && !is_elastic(schedule.update.kind)),
         "a merge that waits for what is lost, or does not");
  for (const auto& each : c.contributions) {
    const auto found = contributions_.find(each.run.value);
    if (found == contributions_.end()) return expect(kMerges, false,
                                                     "a merge of what was not reported");
    expect(kOnce, found->second.fate == Fate::kPending, "a contribution is merged twice");
    expect(kMerges, found->second.worker == each.worker.value, "a merge names another worker");
    expect(kErasure, !erased_.contains(each.worker.value), "a merge of records that were erased");
    check_weight(c, each, found->second);
    const bool follows = merging_runs_.empty() ||
                         contributions_[merging_runs_.back()].shards.first <
                             found->second.shards.first;
    expect(kMerges, follows, "the mean is not in the order of the data");
    found->second.fate = Fate::kMerging;
    merging_runs_.push_back(each.run.value);
  }
  check_state(c.state, true);
}

void SessionChecker::check_weight(const master_command::StartMerge& merge,
                                  const master_command::StartMerge::Contribution& each,
                                  const Contribution& contribution) const {
  const Schedule& schedule = config_.stages[merge.stage];
  const bool weighted = schedule.weight_by_staleness;
  if (merge.mean && is_elastic(schedule.update.kind)) {
    // The centre comes no further than to the mean of the workers.
    const float step = each.weight * schedule.update.moving_rate;
    expect(kMerges, step * static_cast<float>(merge.contributions.size()) < 1.0F + 1e-5F,
           "elastic steps that come to more than the whole way");
    return expect(kMerges, each.weight <= 1.0F && each.share == 1.0F, "a longer elastic step");
  }
  const auto age = static_cast<float>(version_ - std::min(version_, contribution.base));
  const float shards = static_cast<float>(contribution.shards.count);
  if (weighted) {
    expect(kMerges, std::abs(each.weight - 1.0F / (1.0F + age)) < 1e-6F,
           "not the weight of its staleness");
  } else if (shards == 1.0F && !config_.shard_by_speed) {
    expect(kMerges, each.weight == 1.0F && each.share == 1.0F, "a weight that nobody asked for");
  }
}

std::vector<std::uint64_t> SessionChecker::shards_of(
    const master_command::StartMerge& job, const std::vector<WorkerId>& rejected) const {
  std::vector<std::uint64_t> shards;
  for (const auto& each : job.contributions) {
    const auto found = contributions_.find(each.run.value);
    const bool out = std::ranges::find(rejected, each.worker) != rejected.end();
    if (out || found == contributions_.end()) continue;
    for (std::uint64_t i = 0; i < found->second.shards.count; ++i) {
      shards.push_back(found->second.shards.first + i);
    }
  }
  return shards;
}

}  // namespace speedo::sim
