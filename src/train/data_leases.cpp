#include "train/data_leases.hpp"

#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo {

std::uint64_t DataLeases::take() {
  if (returned_.empty()) return fresh_++;
  return returned_.extract(returned_.begin()).value();
}

std::vector<DataLeases::Lease> DataLeases::start_runs(std::span<const WorkerId> workers) {
  std::vector<Lease> leases;
  for (const WorkerId worker : workers) {
    Held& held = held_[worker];
    SPEEDO_ASSERT(!held.current.has_value());
    held.current = held.next ? *std::exchange(held.next, std::nullopt) : take();
    leases.push_back({*held.current, 0});
  }
  for (std::size_t i = 0; i < workers.size(); ++i) {
    leases[i].next = take();
    held_[workers[i]].next = leases[i].next;
  }
  return leases;
}

void DataLeases::use_up(WorkerId worker) {
  const auto held = held_.find(worker);
  SPEEDO_ASSERT(held != held_.end());
  SPEEDO_ASSERT(held->second.current.has_value());
  held->second.current.reset();
}

void DataLeases::give_back(WorkerId worker) {
  const auto held = held_.find(worker);
  if (held == held_.end()) return;
  if (held->second.current) returned_.insert(*held->second.current);
  if (held->second.next) returned_.insert(*held->second.next);
  held_.erase(held);
}

}  // namespace speedo
