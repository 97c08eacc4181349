#include "sim/cost_flows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo::sim {
namespace {

constexpr double kNanoseconds = 1e9;
// Rounding may leave this part of a flow when its time is over.
constexpr double kNothingLeft = 1e-9;
// Longer than any plan; keeps times within 64 bits.
constexpr double kSecondsMax = 1e9;

double seconds_between(Instant from, Instant to) {
  return static_cast<double>((to - from).count()) / kNanoseconds;
}

// Rounded up, so that a flow is never finished before its time.
Instant nanoseconds(double seconds) {
  const double count = std::ceil(std::min(seconds, kSecondsMax) * kNanoseconds);
  return Instant(static_cast<std::int64_t>(count));
}

}  // namespace

Flows::ResourceId Flows::add_server() {
  resources_.emplace_back();
  return resources_.size() - 1;
}

Flows::ResourceId Flows::add_cores(std::function<double(double)> speed) {
  resources_.emplace_back();
  resources_.back().speed = std::move(speed);
  return resources_.size() - 1;
}

Flows::ResourceId Flows::add_server_on(ResourceId cores) {
  SPEEDO_ASSERT(cores < resources_.size() && resources_[cores].speed);
  resources_.emplace_back();
  resources_.back().cores = cores;
  resources_.back().on_cores = true;
  return resources_.size() - 1;
}

void Flows::start(Instant now, double seconds, std::vector<Use> uses, Done done) {
  SPEEDO_ASSERT(seconds >= 0.0 && done != nullptr);
  for (const Use& use : uses) SPEEDO_ASSERT(use.resource < resources_.size());
  move_to(now);
  std::erase_if(uses, [](const Use& use) { return use.seconds <= 0.0; });
  flows_.emplace(next_flow_++, Flow{seconds, std::move(uses), 1.0, 0.0, std::move(done)});
  set_rates();
}

void Flows::advance(Instant now) {
  SPEEDO_ASSERT(idle() || now <= next_);
  move_to(now);
  std::vector<Done> finished;
  for (auto place = flows_.begin(); place != flows_.end();) {
    if (place->second.left > kNothingLeft) {
      ++place;
      continue;
    }
    finished.push_back(std::move(place->second.done));
    place = flows_.erase(place);
  }
  set_rates();
  for (const Done& done : finished) done();
}

void Flows::move_to(Instant now) {
  SPEEDO_ASSERT(now >= now_);
  const double passed = seconds_between(now_, now);
  now_ = now;
  if (passed <= 0.0) return;
  for (auto& [order, flow] : flows_) flow.left -= flow.rate * passed;
  for (Resource& resource : resources_) {
    if (resource.users > 0.0) resource.busy_seconds += passed;
  }
}

void Flows::count_users() {
  for (Resource& resource : resources_) resource.users = 0.0;
  for (const auto& [order, flow] : flows_) {
    for (const Use& use : flow.uses) {
      Resource& resource = resources_[use.resource];
      resource.users += resource.speed ? use.threads : 1.0;
    }
  }
  for (const Resource& resource : resources_) {
    if (resource.on_cores && resource.users > 0.0) resources_[resource.cores].users += 1.0;
  }
}

// Of the resource's speed with nothing else on it.
double Flows::share(const Use& use) const {
  const Resource& resource = resources_[use.resource];
  if (resource.speed) {
    return resource.speed(std::max(resource.users, use.threads)) / resource.speed(use.threads);
  }
  double speed = 1.0;
  if (resource.on_cores) {
    const Resource& cores = resources_[resource.cores];
    speed = cores.speed(std::max(cores.users, 1.0)) / cores.speed(1.0);
  }
  return speed / resource.users;
}

void Flows::set_rates() {
  count_users();
  double first = std::numeric_limits<double>::infinity();
  for (auto& [order, flow] : flows_) {
    double seconds = flow.own_seconds;  // of the whole flow at today's shares
    for (const Use& use : flow.uses) seconds = std::max(seconds, use.seconds / share(use));
    if (seconds <= 0.0) {
      flow.left = 0.0;
      flow.rate = 0.0;
    } else {
      flow.rate = 1.0 / seconds;
    }
    first = std::min(first, std::max(flow.left, 0.0) * seconds);
  }
  if (!flows_.empty()) next_ = now_ + nanoseconds(first);
}

}  // namespace speedo::sim
