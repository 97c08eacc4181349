#include "train/session/shard_leases.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo {

namespace {

void insert(std::set<std::uint64_t>& set, const std::optional<ShardRange>& range) {
  for (std::uint64_t i = 0; range && i < range->count; ++i) set.insert(range->first + i);
}

template <class Value>
void erase(std::map<std::uint64_t, Value>& map, ShardRange range) {
  for (std::uint64_t i = 0; i < range.count; ++i) map.erase(range.first + i);
}

// Requires: all of it is there.
void erase(std::vector<std::uint64_t>& ascending, ShardRange range) {
  const auto first = std::ranges::lower_bound(ascending, range.first);
  const auto count = static_cast<std::ptrdiff_t>(range.count);
  SPEEDO_ASSERT(ascending.end() - first >= count && *first == range.first);
  SPEEDO_ASSERT(first[count - 1] == range.first + range.count - 1);
  ascending.erase(first, first + count);
}

}  // namespace

ShardLeases::ShardLeases(std::uint64_t fresh, std::set<std::uint64_t> open, ShardPlace place,
                         ShardRemains remains)
    : free_(std::move(open)),
      fresh_(fresh),
      place_(place),
      remains_(std::move(remains)),
      open_(free_.begin(), free_.end()) {
  SPEEDO_ASSERT(free_.empty() || *free_.rbegin() < fresh_);
  SPEEDO_ASSERT(place_.shard <= fresh_ && place_.steps > 0);
  for (const std::uint64_t shard : free_) {
    SPEEDO_ASSERT(shard >= place_.shard || remains_.apart.contains(shard));
  }
}

// Ascending, and as few ranges as there can be.
std::vector<StepRange> ShardLeases::open_steps() const {
  std::vector<StepRange> all = remains_.left;
  for (const std::uint64_t shard : open_) all.push_back({step_of(shard), place_.steps});
  std::ranges::sort(all, {}, &StepRange::first);
  std::vector<StepRange> joined;
  for (const StepRange& each : all) {
    const bool adjoins = !joined.empty() && joined.back().first + joined.back().count == each.first;
    if (adjoins) {
      joined.back().count += each.count;
    } else {
      joined.push_back(each);
    }
  }
  return joined;
}

void ShardLeases::set_steps(std::uint64_t steps) {
  SPEEDO_ASSERT(steps > 0);
  if (steps == place_.steps) return;
  SPEEDO_ASSERT(reported_.empty());
  for (const auto& [worker, held] : held_) SPEEDO_ASSERT(!held.current.has_value());
  std::vector<StepRange> open = open_steps();
  std::uint64_t first = step_of(fresh_);
  if (!open.empty() && open.back().first + open.back().count == first) {
    first = open.back().first;
    open.pop_back();
  }
  held_.clear();
  free_.clear();
  open_.clear();
  remains_ = {};
  for (const StepRange& each : open) cut(each, steps);
  place_ = {fresh_, first, steps};
  auto& left = remains_.left;
  if (left.size() > kLeftMax) left.erase(left.begin(), left.end() - std::ptrdiff_t{kLeftMax});
}

void ShardLeases::cut(StepRange range, std::uint64_t steps) {
  for (; range.count >= steps; range.first += steps, range.count -= steps) {
    remains_.apart.emplace(fresh_, range.first);
    free_.insert(fresh_);
    open_.push_back(fresh_++);
  }
  if (range.count > 0) remains_.left.push_back(range);
}

std::uint64_t ShardLeases::steps_left() const {
  std::uint64_t steps = 0;
  for (const StepRange& each : remains_.left) steps += each.count;
  return steps;
}

std::uint64_t ShardLeases::step_of(std::uint64_t shard) const {
  if (shard >= place_.shard) return place_.step + (shard - place_.shard) * place_.steps;
  const auto found = remains_.apart.find(shard);
  SPEEDO_ASSERT(found != remains_.apart.end());
  return found->second;
}

// Shards of a run are a piece of the data.
ShardRange ShardLeases::take(std::uint64_t shards) {
  SPEEDO_ASSERT(shards > 0);
  if (free_.empty()) {
    for (std::uint64_t i = 0; i < shards; ++i) open_.push_back(fresh_ + i);
    return {std::exchange(fresh_, fresh_ + shards), shards};
  }
  const std::uint64_t first = *free_.begin();
  ShardRange range{first, 0};
  const auto goes_on = [&](std::uint64_t shard) {
    return free_.contains(shard) &&
           step_of(shard) == step_of(first) + (shard - first) * place_.steps;
  };
  while (range.count < shards && goes_on(first + range.count)) {
    free_.erase(first + range.count);
    range.count += 1;
  }
  return range;
}

std::vector<ShardLeases::Lease> ShardLeases::start_runs(std::span<const Order> orders) {
  std::vector<Lease> leases;
  for (const Order& order : orders) {
    Held& held = held_[order.worker];
    SPEEDO_ASSERT(!held.current.has_value());
    held.current = held.next ? *std::exchange(held.next, std::nullopt) : take(order.shards);
    leases.push_back({*held.current, 0});
  }
  for (std::size_t i = 0; i < orders.size(); ++i) {
    const ShardRange next = take(orders[i].shards);
    leases[i].next = next.first;
    held_[orders[i].worker].next = next;
  }
  return leases;
}

ShardRange ShardLeases::current(WorkerId worker) const {
  const auto held = held_.find(worker);
  SPEEDO_ASSERT(held != held_.end() && held->second.current.has_value());
  return *held->second.current;
}

ShardRange ShardLeases::report(WorkerId worker) {
  const auto held = held_.find(worker);
  SPEEDO_ASSERT(held != held_.end());
  SPEEDO_ASSERT(held->second.current.has_value());
  const ShardRange shards = *std::exchange(held->second.current, std::nullopt);
  for (std::uint64_t i = 0; i < shards.count; ++i) reported_.emplace(shards.first + i, worker);
  return shards;
}

void ShardLeases::use_up(ShardRange reported) {
  SPEEDO_ASSERT(reported_.contains(reported.first));
  erase(reported_, reported);
  erase(open_, reported);
  erase(remains_.apart, reported);
}

void ShardLeases::free_reported(ShardRange reported) {
  SPEEDO_ASSERT(reported_.contains(reported.first));
  erase(reported_, reported);
  insert(free_, reported);
}

ShardLeases::Lease ShardLeases::train_again(WorkerId worker, ShardRange reported) {
  SPEEDO_ASSERT(reported_.contains(reported.first));
  Held& held = held_.at(worker);
  SPEEDO_ASSERT(!held.current && held.next);
  erase(reported_, reported);
  held.current = reported;
  return {reported, held.next->first};
}

bool ShardLeases::has_begun_open(WorkerId worker) const {
  const auto held = held_.find(worker);
  if (held != held_.end() && held->second.current) return true;
  return std::ranges::any_of(reported_,
                             [worker](const auto& each) { return each.second == worker; });
}

void ShardLeases::give_back(WorkerId worker) {
  const auto held = held_.find(worker);
  if (held == held_.end()) return;
  insert(free_, held->second.current);
  insert(free_, held->second.next);
  held_.erase(held);
}

std::vector<std::uint64_t> ShardLeases::open(std::span<const ShardRange> without) const {
  std::vector<std::uint64_t> left = open_;
  for (const ShardRange& range : without) erase(left, range);
  return left;
}

}  // namespace speedo
