#include "sim/plan/cost_flows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo::sim {
namespace {

constexpr double kNanoseconds = 1e9;
// Rounding may leave this part of a flow when its time is over.
constexpr double kNothingLeft = 1e-9;
// As much may what fills a resource be off.
constexpr double kRounding = 1e-9;
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

void Flows::pair_up(ResourceId way, ResourceId other) {
  resources_[way].other_way = other;
  resources_[other].other_way = way;
}

Flows::ResourceId Flows::add_cores(double count, std::function<double(double)> speed,
                                   double mixed) {
  SPEEDO_ASSERT(count > 0.0 && speed != nullptr && mixed > 0.0);
  Resource cores;
  cores.count = count;
  cores.mixed = mixed;
  cores.speed = std::move(speed);
  resources_.push_back(std::move(cores));
  return resources_.size() - 1;
}

void Flows::start(Instant now, double seconds, std::vector<Use> uses, Done done, Party party) {
  SPEEDO_ASSERT(seconds >= 0.0 && done != nullptr);
  move_to(now);
  std::erase_if(uses, [](const Use& use) { return use.seconds <= 0.0; });
  Flow flow;
  flow.alone_seconds = seconds;
  for (const Use& use : uses) {
    SPEEDO_ASSERT(use.resource < resources_.size());
    flow.alone_seconds = std::max(flow.alone_seconds, use.seconds);
  }
  flow.uses = std::move(uses);
  flow.done = std::move(done);
  flow.party = party;
  flows_.emplace(next_flow_++, std::move(flow));
  is_dealt_ = false;
}

void Flows::advance(Instant now) {
  set_rates();
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
  is_dealt_ = false;
  for (const Done& done : finished) done();
}

void Flows::move_to(Instant now) {
  SPEEDO_ASSERT(now >= now_);
  const double passed = seconds_between(now_, now);
  if (passed > 0.0) set_rates();
  now_ = now;
  if (passed <= 0.0) return;
  for (auto& [order, flow] : flows_) {
    const double done = std::min(flow.rate * passed, flow.left);
    flow.left -= flow.rate * passed;
    for (const Use& use : flow.uses) {
      Resource& resource = resources_[use.resource];
      resource.busy_seconds += done * use.seconds;
      if (!resource.other_way) continue;
      resource.step_seconds += done * use.seconds;
      moved_.push_back(use.resource);
    }
  }
  count_links();
}

void Flows::count_links() {
  for (const ResourceId way : moved_) {
    Resource& one = resources_[way];
    Resource& other = resources_[*one.other_way];
    const double busier = std::max(one.step_seconds, other.step_seconds);
    one.step_seconds = other.step_seconds = 0.0;
    resources_[std::min(way, *one.other_way)].either_busy_seconds += busier;
  }
  moved_.clear();
}

// Of a resource, by the flow as fast as alone: threads slow each other down beyond taking cores.
double Flows::part(const Flow& flow, const Use& use) const {
  const Resource& resource = resources_[use.resource];
  const double part = use.seconds / flow.alone_seconds;
  return resource.speed ? part * resource.speed(use.threads) / resource.pace : part;
}

double Flows::speed_at(const Flow& flow, double level) const {
  return flow.full_level > level ? flow.full_speed * level / flow.full_level : flow.full_speed;
}

// With so many threads on them, no more than there are cores.
double Flows::pace_of(const Resource& cores, double busy) const {
  bool any_computes = false, any_moves = false;
  for (const Claim& claim : cores.claims) (claim.use->computes ? any_computes : any_moves) = true;
  return cores.speed(busy) * (any_computes && any_moves ? cores.mixed : 1.0);
}

void Flows::gather_claims() {
  for (const std::size_t resource : claimed_) resources_[resource].claims.clear();
  claimed_.clear();
  for (auto& [order, flow] : flows_) {
    for (const Use& use : flow.uses) {
      std::vector<Claim>& claims = resources_[use.resource].claims;
      if (claims.empty()) claimed_.push_back(use.resource);
      claims.push_back({&flow, &use, 0.0});
    }
  }
  std::sort(claimed_.begin(), claimed_.end());
}

void Flows::begin_dealing() {
  gather_claims();
  std::map<std::size_t, double> members;
  for (auto& [order, flow] : flows_) {
    flow.is_dealt = false;
    flow.widest = 0.0;
    if (flow.party) members[*flow.party] += 1.0;
  }
  for (const std::size_t i : claimed_) {
    Resource& resource = resources_[i];
    resource.is_full = false;
    resource.capacity = resource.count;
    if (resource.speed) {
      double busy = 0.0;  // threads
      for (const Claim& claim : resource.claims) {
        busy += claim.use->threads * claim.use->seconds / claim.flow->alone_seconds;
      }
      const double full = std::max(resource.count, 1.0);
      resource.pace = pace_of(resource, std::clamp(busy, 1.0, full));
      if (busy > full) {
        resource.capacity = busy * resource.speed(busy) / resource.speed(full);
      }
    }
    for (Claim& claim : resource.claims) {
      const double part = this->part(*claim.flow, *claim.use);
      claim.flow->widest = std::max(claim.flow->widest, part);
      claim.wanted = part * claim.use->threads;
    }
  }
  for (auto& [order, flow] : flows_) {
    flow.full_speed = flow.widest > 1.0 ? 1.0 / flow.widest : 1.0;
    flow.full_level = std::min(flow.widest, 1.0) * (flow.party ? members[*flow.party] : 1.0);
  }
}

// The level of a party's share at which the flows fill the resource; infinite if they never do.
double Flows::level_that_fills(std::size_t resource) {
  double full = 0.0, slope = 0.0;  // used = full + slope x level
  double most = 0.0;               // used at the highest level
  ends_.clear();                   // of a part of the slope, with its level
  for (const Claim& claim : resources_[resource].claims) {
    const Flow& flow = *claim.flow;
    if (flow.is_dealt) {
      full += claim.wanted * flow.speed;
    } else {
      slope += claim.wanted * flow.full_speed / flow.full_level;
      ends_.emplace_back(flow.full_level, claim.wanted * flow.full_speed);
      most += claim.wanted * flow.full_speed;
    }
  }
  const double capacity = resources_[resource].capacity;
  if (full + most <= capacity) return std::numeric_limits<double>::infinity();
  std::sort(ends_.begin(), ends_.end());
  for (std::size_t i = 0; i < ends_.size();) {
    const double level = ends_[i].first;
    double wanted = 0.0;
    for (; i < ends_.size() && ends_[i].first == level; ++i) wanted += ends_[i].second;
    if (full + slope * level > capacity * (1.0 + kRounding)) {
      return std::max(0.0, capacity - full) / slope;
    }
    full += wanted;
    slope -= wanted / level;
  }
  return std::numeric_limits<double>::infinity();
}

// Everybody's level rises together; whoever uses what is full stays where it is.
void Flows::deal_shares() {
  begin_dealing();
  while (true) {
    double level = std::numeric_limits<double>::infinity();
    std::optional<std::size_t> fullest;
    for (const std::size_t i : claimed_) {
      if (resources_[i].is_full) continue;
      const double fills = level_that_fills(i);
      if (fills >= level) continue;
      level = fills;
      fullest = i;
    }
    const auto deal = [&](Flow& flow) {
      if (flow.is_dealt) return;
      flow.speed = speed_at(flow, level);
      flow.is_dealt = true;
    };
    if (!fullest) {
      for (auto& [order, flow] : flows_) deal(flow);
      return;
    }
    for (const Claim& claim : resources_[*fullest].claims) deal(*claim.flow);
    resources_[*fullest].is_full = true;
  }
}

void Flows::set_rates() {
  if (is_dealt_) return;
  is_dealt_ = true;
  deal_shares();
  double first = std::numeric_limits<double>::infinity();
  for (auto& [order, flow] : flows_) {
    if (flow.alone_seconds <= 0.0) {
      flow.left = 0.0;
      flow.rate = 0.0;
    } else {
      SPEEDO_ASSERT(flow.speed > 0.0);
      flow.rate = flow.speed / flow.alone_seconds;
    }
    const double left = std::max(flow.left, 0.0);
    first = std::min(first, left > 0.0 ? left / flow.rate : 0.0);
  }
  if (!flows_.empty()) next_ = now_ + nanoseconds(first);
}

}  // namespace speedo::sim
