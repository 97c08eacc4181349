#include "sim/plan/cost_flows.hpp"

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
  auto flow = std::make_unique<Flow>();
  flow->alone_seconds = seconds;
  for (const Use& use : uses) flow->alone_seconds = std::max(flow->alone_seconds, use.seconds);
  for (const Use& use : uses) claim(*flow, use);
  flow->done = std::move(done);
  if (party) {
    flow->members = &members_[*party];
    *flow->members += 1.0;
  }
  flows_.push_back(std::move(flow));
  is_dealt_ = false;
}

void Flows::claim(Flow& flow, const Use& use) {
  SPEEDO_ASSERT(use.resource < resources_.size());
  Resource& resource = resources_[use.resource];
  if (resource.claims.empty()) {
    claimed_.insert(std::ranges::lower_bound(claimed_, use.resource), use.resource);
  }
  Claim& claim = resource.claims.emplace_back();
  claim.flow = &flow;
  claim.share = use.seconds / flow.alone_seconds;
  claim.threads = use.threads;
  claim.speed = resource.speed ? resource.speed(use.threads) : 1.0;
  claim.computes = use.computes;
  const auto place = std::ranges::lower_bound(flow.resources, use.resource);
  const bool is_new = place == flow.resources.end() || *place != use.resource;
  if (is_new) flow.resources.insert(place, use.resource);
}

void Flows::release(Flow& flow) {
  for (const ResourceId each : flow.resources) {
    Resource& resource = resources_[each];
    std::erase_if(resource.claims, [&](const Claim& claim) { return claim.flow == &flow; });
    if (!resource.claims.empty()) continue;
    resource.busy_rate = 0.0;
    claimed_.erase(std::ranges::lower_bound(claimed_, each));
  }
  if (flow.members != nullptr) *flow.members -= 1.0;
}

void Flows::advance(Instant now) {
  set_rates();
  SPEEDO_ASSERT(idle() || now <= next_);
  move_to(now);
  std::vector<Done> finished;
  for (const auto& flow : flows_) {
    if (flow->left > kNothingLeft) continue;
    finished.push_back(std::move(flow->done));
    release(*flow);
  }
  std::erase_if(flows_, [](const auto& flow) { return flow->left <= kNothingLeft; });
  is_dealt_ = false;
  for (const Done& done : finished) done();
}

void Flows::move_to(Instant now) {
  SPEEDO_ASSERT(now >= now_);
  const double passed = seconds_between(now_, now);
  if (passed > 0.0) set_rates();
  now_ = now;
  if (passed <= 0.0) return;
  for (const auto& flow : flows_) flow->left -= flow->rate * passed;
  for (const ResourceId each : claimed_) {
    Resource& resource = resources_[each];
    resource.busy_seconds += resource.busy_rate * passed;
    if (!resource.other_way) continue;
    const Resource& other = resources_[*resource.other_way];
    if (*resource.other_way < each && !other.claims.empty()) continue;  // counted there
    resources_[std::min(each, *resource.other_way)].either_busy_seconds +=
        std::max(resource.busy_rate, other.busy_rate) * passed;
  }
}

double Flows::speed_at(const Flow& flow, double level) const {
  return flow.full_level > level ? flow.full_speed * level / flow.full_level : flow.full_speed;
}

// What their claims want and what they give: threads slow each other down beyond taking cores.
void Flows::size_up(Resource& cores) const {
  bool any_computes = false, any_moves = false;
  double busy = 0.0;  // threads
  for (const Claim& claim : cores.claims) {
    (claim.computes ? any_computes : any_moves) = true;
    busy += claim.threads * claim.share;
  }
  // With so many threads on them, no more than there are cores.
  const double full = std::max(cores.count, 1.0);
  const double pace = cores.speed(std::clamp(busy, 1.0, full)) *
                      (any_computes && any_moves ? cores.mixed : 1.0);
  cores.capacity = busy > full ? busy * cores.speed(busy) / cores.speed(full) : cores.count;
  for (Claim& claim : cores.claims) claim.wanted = claim.share * claim.speed / pace;
}

void Flows::begin_dealing() {
  for (const auto& flow : flows_) {
    flow->is_dealt = false;
    flow->widest = 0.0;
  }
  for (const ResourceId each : claimed_) {
    Resource& resource = resources_[each];
    if (resource.speed) size_up(resource);
    for (Claim& claim : resource.claims) {
      if (!resource.speed) claim.wanted = claim.share;
      claim.flow->widest = std::max(claim.flow->widest, claim.wanted);
      claim.wanted *= claim.threads;
    }
  }
  for (const auto& flow : flows_) {
    flow->full_speed = flow->widest > 1.0 ? 1.0 / flow->widest : 1.0;
    flow->full_level = std::min(flow->widest, 1.0) * (flow->members ? *flow->members : 1.0);
  }
}

// The level of a party's share at which the flows fill the resource; infinite if they never do.
double Flows::level_that_fills(const Resource& resource) {
  double full = 0.0, slope = 0.0;  // used = full + slope x level
  double most = 0.0;               // used at the highest level
  for (const Claim& claim : resource.claims) {
    const Flow& flow = *claim.flow;
    (flow.is_dealt ? full : most) += claim.wanted * (flow.is_dealt ? flow.speed : flow.full_speed);
  }
  if (full + most <= resource.capacity) return std::numeric_limits<double>::infinity();
  ends_.clear();  // of a part of the slope, with its level
  for (const Claim& claim : resource.claims) {
    const Flow& flow = *claim.flow;
    if (flow.is_dealt) continue;
    ends_.emplace_back(flow.full_level, claim.wanted * flow.full_speed);
    slope += claim.wanted * flow.full_speed / flow.full_level;
  }
  std::sort(ends_.begin(), ends_.end());
  for (std::size_t i = 0; i < ends_.size();) {
    const double level = ends_[i].first;
    double wanted = 0.0;
    for (; i < ends_.size() && ends_[i].first == level; ++i) wanted += ends_[i].second;
    if (full + slope * level > resource.capacity * (1.0 + kRounding)) {
      return std::max(0.0, resource.capacity - full) / slope;
    }
    full += wanted;
    slope -= wanted / level;
  }
  return std::numeric_limits<double>::infinity();
}

// Everybody's level rises together; whoever uses what is full stays where it is. So nothing is full
// at a lower level than was reckoned before others stayed behind: only what is next has to be
// reckoned anew.
void Flows::deal_shares() {
  begin_dealing();
  fills_.clear();
  for (const ResourceId each : claimed_) {
    const double level = level_that_fills(resources_[each]);
    if (std::isfinite(level)) fills_.emplace_back(level, each);
  }
  std::ranges::make_heap(fills_, std::ranges::greater{});
  double reached = 0.0;
  while (!fills_.empty()) {
    std::ranges::pop_heap(fills_, std::ranges::greater{});
    const ResourceId fullest = fills_.back().second;
    fills_.pop_back();
    const double fills = level_that_fills(resources_[fullest]);
    if (!std::isfinite(fills)) continue;
    const double level = std::max(reached, fills);  // but for rounding
    if (!fills_.empty() && fills_.front() < std::pair(level, fullest)) {
      fills_.emplace_back(level, fullest);
      std::ranges::push_heap(fills_, std::ranges::greater{});
      continue;
    }
    reached = level;
    for (const Claim& claim : resources_[fullest].claims) {
      Flow& flow = *claim.flow;
      if (!flow.is_dealt) flow.speed = speed_at(flow, level);
      flow.is_dealt = true;
    }
  }
  for (const auto& flow : flows_) {
    if (!flow->is_dealt) flow->speed = flow->full_speed;
  }
}

void Flows::set_rates() {
  if (is_dealt_) return;
  is_dealt_ = true;
  deal_shares();
  double first = std::numeric_limits<double>::infinity();
  for (const auto& flow : flows_) {
    if (flow->alone_seconds <= 0.0) {
      flow->left = 0.0;
      flow->rate = 0.0;
    } else {
      SPEEDO_ASSERT(flow->speed > 0.0);
      flow->rate = flow->speed / flow->alone_seconds;
    }
    const double left = std::max(flow->left, 0.0);
    first = std::min(first, left > 0.0 ? left / flow->rate : 0.0);
  }
  for (const ResourceId each : claimed_) {
    double rate = 0.0;
    for (const Claim& claim : resources_[each].claims) rate += claim.flow->speed * claim.share;
    resources_[each].busy_rate = rate;
  }
  if (!flows_.empty()) next_ = now_ + nanoseconds(first);
}

}  // namespace speedo::sim
