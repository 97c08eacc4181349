#include "train/session/shard_leases.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo {

namespace {

void insert(std::set<std::uint64_t>& set, const std::optional<ShardRange>& range) {
  for (std::uint64_t i = 0; range && i < range->count; ++i) set.insert(range->first + i);
}

void erase(std::map<std::uint64_t, WorkerId>& map, ShardRange range) {
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

ShardLeases::ShardLeases(std::uint64_t fresh, std::set<std::uint64_t> open, ShardPlace place)
    : free_(std::move(open)), fresh_(fresh), place_(place), open_(free_.begin(), free_.end()) {
  SPEEDO_ASSERT(free_.empty() || *free_.rbegin() < fresh_);
  SPEEDO_ASSERT(free_.empty() || *free_.begin() >= place_.shard);
  SPEEDO_ASSERT(place_.shard <= fresh_ && place_.steps > 0);
}

void ShardLeases::set_steps(std::uint64_t steps) {
  SPEEDO_ASSERT(steps > 0);
  if (steps == place_.steps) return;
  SPEEDO_ASSERT(reported_.empty());
  for (const auto& [worker, held] : held_) SPEEDO_ASSERT(!held.current.has_value());
  std::uint64_t first = fresh_;
  while (!open_.empty() && open_.back() + 1 == first) {
    first = open_.back();
    open_.pop_back();
  }
  place_ = {fresh_, step_of(first), steps};
  held_.clear();
  free_.clear();
  open_.clear();
}

std::uint64_t ShardLeases::step_of(std::uint64_t shard) const {
  SPEEDO_ASSERT(shard >= place_.shard);
  return place_.step + (shard - place_.shard) * place_.steps;
}

ShardRange ShardLeases::take(std::uint64_t shards) {
  SPEEDO_ASSERT(shards > 0);
  if (free_.empty()) {
    for (std::uint64_t i = 0; i < shards; ++i) open_.push_back(fresh_ + i);
    return {std::exchange(fresh_, fresh_ + shards), shards};
  }
  ShardRange range{*free_.begin(), 0};
  while (range.count < shards && free_.erase(range.first + range.count) == 1) range.count += 1;
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
