#include "sim/check/shard_checker.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace speedo::sim {

ShardChecker::ShardChecker(std::uint64_t first, bool one_each, Violations& violations)
    : one_each_(one_each),
      violations_(violations),
      fresh_(first),
      used_(first, true),
      used_count_(first) {}

void ShardChecker::go_on_from(const record::Session& state) {
  fresh_ = state.data_fresh();
  free_ = {state.data_open().begin(), state.data_open().end()};
  used_.assign(fresh_, true);
  for (const std::uint64_t shard : free_) used_[shard] = false;
  used_count_ = fresh_ - free_.size();
}

// Shards of a run that is done again stay where they were.
bool ShardChecker::is_dealt_again(const Deal& deal) {
  Held& held = held_[deal.worker];
  if (!held.again) return false;
  const bool are_same =
      deal.shards.first == held.again->first && deal.shards.count == held.again->count;
  expect(are_same, "other shards than those of the run that is done again");
  expect(held.next == deal.next, "other shards reserved than before the run is done again");
  held.current = std::exchange(held.again, std::nullopt);
  return true;
}

void ShardChecker::dealt(std::span<const Deal> deals) {
  std::vector<Deal> dealt;
  for (const Deal& each : deals) {
    if (!is_dealt_again(each)) dealt.push_back(each);
  }
  for (const Deal& each : dealt) {
    Held& held = held_[each.worker];
    std::uint64_t known = 0;  // shards of the run that were reserved, as far as that is known
    if (held.next) {
      expect(each.shards.first == *held.next, "not the shards that were reserved");
      known = 1;
    }
    for (std::uint64_t i = known; i < each.shards.count; ++i) deal(each.shards.first + i);
    for (std::uint64_t i = 0; i < each.shards.count; ++i) {
      place(each.shards.first + i, each.step + i * each.steps, each.steps);
    }
    held.current = each.shards;
    held.next.reset();
  }
  for (const Deal& each : dealt) {
    deal(each.next);
    place(each.next, each.next_step, each.steps);
    held_[each.worker].next = each.next;
  }
}

void ShardChecker::deal(std::uint64_t shard) {
  if (one_each_ && free_.empty())
    expect(shard == fresh_, "shards that were never dealt, out of order");
  if (one_each_ && !free_.empty()) expect(shard == *free_.begin(), "a shard is left behind");
  expect(!is_used(shard), "a shard that is used is given out again");
  expect(taken_.insert(shard).second, "a shard given to two workers");
  fresh_ = std::max(fresh_, shard + 1);
  free_.erase(shard);
}

void ShardChecker::place(std::uint64_t shard, std::uint64_t step, std::uint64_t steps) {
  if (steps == 0) return;
  const auto after = places_.upper_bound(step);
  const bool is_before_it = after == places_.end() || step + steps <= after->first;
  const auto before = after == places_.begin() ? places_.end() : std::prev(after);
  const bool is_known = before != places_.end() && before->first == step &&
                        before->second.end == step + steps && before->second.shard == shard;
  const bool is_behind = before == places_.end() || before->second.end <= step;
  expect(is_before_it && (is_known || is_behind), "data that two shards have");
  places_[step] = {step + steps, shard};
}

ShardChecker::Range ShardChecker::reported(std::uint64_t worker) {
  Held& held = held_[worker];
  expect(held.current.has_value(), "shards reported that were not given out");
  const Range shards = held.current.value_or(Range{});
  held.current.reset();
  return shards;
}

void ShardChecker::used(Range shards) {
  for (std::uint64_t i = 0; i < shards.count; ++i) {
    expect(taken_.erase(shards.first + i) == 1, "a shard is used twice");
    mark_used(shards.first + i);
  }
}

void ShardChecker::lost(Range shards) {
  for (std::uint64_t i = 0; i < shards.count; ++i) {
    expect(taken_.contains(shards.first + i), "a shard is lost that nobody reported");
    free(shards.first + i);
  }
}

void ShardChecker::mark_used(std::uint64_t shard) {
  if (is_used(shard)) return;
  if (shard >= used_.size()) used_.resize(shard + 1, false);
  used_[shard] = true;
  used_count_ += 1;
}

// All data that were open, as far as it is known where they lie, are those of new shards, or lie in
// pieces that are remembered.
void ShardChecker::check_cut(const std::vector<std::uint64_t>& given_up,
                             const record::Session& cut) {
  std::map<std::uint64_t, std::uint64_t> has;  // from .. to; all from the place's step on, too
  for (const std::uint64_t first : cut.data_apart()) has[first] = first + cut.data_steps();
  std::map<std::uint64_t, std::uint64_t> left;
  for (int i = 0; i + 1 < cut.data_left_size(); i += 2) {
    left[cut.data_left(i)] = cut.data_left(i) + cut.data_left(i + 1);
  }
  has.insert(left.begin(), left.end());
  has[cut.data_step()] = UINT64_MAX;
  const auto is_there = [&](std::uint64_t from, std::uint64_t to) {
    while (from < to) {
      const auto after = has.upper_bound(from);
      if (after == has.begin() || std::prev(after)->second <= from) return false;
      from = std::prev(after)->second;
    }
    return true;
  };
  for (const auto& [first, place] : places_) {
    if (!std::ranges::binary_search(given_up, place.shard)) continue;
    expect(is_there(first, place.end), "data that were open are lost as shards become others");
  }
  for (const auto& [from, to] : left_) {
    expect(is_there(from, to), "data that were left are lost as shards become others");
  }
  left_ = std::move(left);
}

std::vector<std::uint64_t> ShardChecker::given_up(std::uint64_t fresh, const record::Session* cut) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t shard = 0; shard < fresh; ++shard) {
    if (is_used(shard)) continue;
    mark_used(shard);
    all.push_back(shard);
  }
  if (cut != nullptr) check_cut(all, *cut);
  std::erase_if(places_, [&](const auto& each) {
    return std::ranges::binary_search(all, each.second.shard);
  });
  free_.clear();
  taken_.clear();
  held_.clear();
  fresh_ = std::max(fresh_, fresh);
  return all;
}

void ShardChecker::gone(std::uint64_t worker) {
  const auto found = held_.find(worker);
  if (found == held_.end()) return;
  const Held& held = found->second;
  for (std::uint64_t i = 0; held.current && i < held.current->count; ++i) {
    free(held.current->first + i);
  }
  if (held.next) free(*held.next);
  if (held.again) lost(*held.again);
  held_.erase(found);
}

void ShardChecker::free(std::uint64_t shard) {
  taken_.erase(shard);
  free_.insert(shard);
}

void ShardChecker::check_state(const record::Session& state, std::span<const Range> merging,
                               bool discards) const {
  const std::set<std::uint64_t> open(state.data_open().begin(), state.data_open().end());
  expect(open.size() == static_cast<std::size_t>(state.data_open_size()), "a shard is open twice");
  expect(open.empty() || *open.rbegin() < state.data_fresh(), "a shard is open that is not dealt");
  for (const std::uint64_t shard : open) expect(!is_used(shard), "a shard is used and open");
  std::uint64_t gone = used_count_;
  for (const Range& each : merging) {
    gone += each.count;
    for (std::uint64_t i = 0; i < each.count; ++i) {
      expect(!open.contains(each.first + i), "a shard is merged and open");
    }
  }
  expect(open.size() + gone <= state.data_fresh(), "a shard is open that was not given out");
  expect(discards || open.size() + gone == state.data_fresh(), "a shard is lost");
}

}  // namespace speedo::sim
