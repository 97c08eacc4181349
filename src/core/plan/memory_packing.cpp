// Best fit by offset: one array after the other goes into the smallest gap that those placed
// before, and alive with it, leave. The order decides how good the result is, so several are tried.
#include "core/plan/memory_packing.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace speedo {
namespace {

using Order = std::vector<std::size_t>;

constexpr int kOrderRules = 5;
// Of more one rule must do: the time of each grows with the square of their number.
constexpr std::size_t kArraysForAllRules = 4000;

// What is placed early by a rule has a large key.
std::pair<std::int64_t, std::int64_t> key_of(const Lifetime& lifetime, int rule) {
  const std::int64_t length = lifetime.last - lifetime.first + 1;
  switch (rule) {
    case 0:
      return {lifetime.size, length};
    case 1:
      return {length, lifetime.size};
    case 2:
      return {lifetime.size * length, lifetime.size};
    case 3:
      return {-lifetime.first, lifetime.last};
    default:
      return {lifetime.last, -lifetime.first};
  }
}

Order order_by(std::span<const Lifetime> lifetimes, int rule) {
  Order order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return key_of(lifetimes[a], rule) > key_of(lifetimes[b], rule);
  });
  return order;
}

// The offset of the smallest gap that fits, or the end of all that is alive. `occupied`: from
// begin to end, sorted by begin.
std::int64_t best_fit(const std::vector<std::pair<std::int64_t, std::int64_t>>& occupied,
                      std::int64_t size) {
  std::int64_t end = 0, best = -1, best_gap = 0;
  for (const auto& [begin, next_end] : occupied) {
    const std::int64_t gap = begin - end;
    if (gap >= size && (best < 0 || gap < best_gap)) {
      best = end;
      best_gap = gap;
    }
    end = std::max(end, next_end);
  }
  return best < 0 ? end : best;
}

Packing pack_in_order(std::span<const Lifetime> lifetimes, const Order& order) {
  Packing packing;
  packing.offsets.resize(lifetimes.size());
  Order placed;
  std::vector<std::pair<std::int64_t, std::int64_t>> occupied;
  for (const std::size_t i : order) {
    const Lifetime& lifetime = lifetimes[i];
    occupied.clear();
    for (const std::size_t other : placed) {
      const Lifetime& there = lifetimes[other];
      if (there.first > lifetime.last || there.last < lifetime.first) continue;
      occupied.emplace_back(packing.offsets[other], packing.offsets[other] + there.size);
    }
    std::sort(occupied.begin(), occupied.end());
    packing.offsets[i] = best_fit(occupied, lifetime.size);
    packing.size = std::max(packing.size, packing.offsets[i] + lifetime.size);
    placed.push_back(i);
  }
  return packing;
}

}  // namespace

std::int64_t most_alive(std::span<const Lifetime> lifetimes) {
  std::map<int, std::int64_t> changes;
  for (const Lifetime& lifetime : lifetimes) {
    changes[lifetime.first] += lifetime.size;
    changes[lifetime.last + 1] -= lifetime.size;
  }
  std::int64_t alive = 0, most = 0;
  for (const auto& [step, change] : changes) {
    alive += change;
    most = std::max(most, alive);
  }
  return most;
}

Packing pack(std::span<const Lifetime> lifetimes) {
  const std::int64_t least = most_alive(lifetimes);
  Packing best;
  const int rules = lifetimes.size() <= kArraysForAllRules ? kOrderRules : 1;
  for (int rule = 0; rule < rules; ++rule) {
    Packing packing = pack_in_order(lifetimes, order_by(lifetimes, rule));
    if (rule == 0 || packing.size < best.size) best = std::move(packing);
    if (best.size == least) break;
  }
  return best;
}

}  // namespace speedo
