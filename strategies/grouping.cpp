// Grouping (MXNet-G): synchronous inside a group, asynchronous between groups. Each group works in
// rounds of its own, as `sync` does: it waits for its members, merges their mean as one iteration
// and starts them; no group waits for another. With workers of similar speed in a group nobody
// waits long, and there are fewer updates to be stale against than with `async`.
//
// Groups are listed, by names of workers or of hosts ("host/pid/k" begins with its host), or
// measured. A worker that stands in no list is a group of its own.
// Measured: everybody is a group of its own until all who began training are known by speed; then
// the workers known are cut into groups of similar speed. Who joins later runs alone until it is
// known too, which cuts the groups again; so does every regroup_interval reports with the speeds
// since the last time. A worker whose runs all fail is left alone.
//
// When groups change, a group whose members stay the same is not disturbed. The others end their
// rounds; each member then goes over to its new group, where it starts if the group is idle, or
// else with the next round.
//
// Invariant: every live worker is member of the group that its last round was in, and goes over
// only at the end of a round.
// Invariant: a group with members has a round under way (Sync's), so nobody waits for ever.

#include "grouping.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/assert.hpp>

#include "speed_clusters.hpp"

namespace speedo {

namespace {

std::string host_of(const std::string& name) { return name.substr(0, name.find('/')); }

}  // namespace

Grouping::Grouping(const StrategyOptions& options)
    : listed_(options.groups),
      group_count_(options.group_count),
      regroup_interval_(options.regroup_interval),
      next_group_(options.groups.size()) {}

Commands Grouping::on(const Event& event) {
  if (const auto* e = std::get_if<Joined>(&event)) return joined(*e);
  if (const auto* e = std::get_if<Left>(&event)) return left(*e);
  if (const auto* e = std::get_if<Failed>(&event)) return reported(e->worker, event, 0, 0);
  const auto& e = std::get<Trained>(event);
  return reported(e.worker, event, e.samples, e.duration_us);
}

Commands Grouping::joined(const Joined& event) {
  SPEEDO_ASSERT(!event.workers.empty());
  SPEEDO_ASSERT(event.names.empty() || event.names.size() == event.workers.size());
  for (std::size_t i = 0; i < event.workers.size(); ++i) {
    const std::string name = event.names.empty() ? std::string() : event.names[i];
    const bool inserted = members_.emplace(event.workers[i], Member{0, first_group(name)}).second;
    SPEEDO_ASSERT(inserted);
    speeds_.joined(event.workers[i], name);
  }
  if (!begun_) founders_.insert(event.workers.begin(), event.workers.end());
  begun_ = true;
  regroup_if_due();
  std::map<GroupId, std::vector<WorkerId>> arrivals;
  for (const WorkerId worker : event.workers) {
    arrivals[members_.at(worker).target].push_back(worker);
  }
  return enter(arrivals);
}

Commands Grouping::left(const Left& event) {
  const auto member = members_.find(event.worker);
  SPEEDO_ASSERT(member != members_.end());
  const GroupId group = member->second.group;
  members_.erase(member);
  speeds_.left(event.worker);
  founders_.erase(event.worker);
  placed_.erase(event.worker);
  regroup_if_due();
  return in_group(group, event);
}

Commands Grouping::reported(WorkerId worker, const Event& event, std::uint64_t samples,
                            std::uint64_t duration_us) {
  const auto member = members_.find(worker);
  SPEEDO_ASSERT(member != members_.end());
  speeds_.reported(worker, samples, duration_us);
  reports_ += 1;
  regroup_if_due();
  return in_group(member->second.group, event);
}

// Lets a group see an event. A Train among its commands says that its round is over: whoever
// belongs elsewhere by now leaves it before the new round, and enters there.
Commands Grouping::in_group(GroupId group, const Event& event) {
  Sync& round = groups_.at(group);
  Commands commands;
  std::map<GroupId, std::vector<WorkerId>> movers;
  for (Command& command : round.on(event)) {
    const auto* train = std::get_if<Train>(&command);
    const GroupId target = train == nullptr ? group : members_.at(train->worker).target;
    if (target == group) {
      commands.push_back(std::move(command));
    } else {
      movers[target].push_back(train->worker);
    }
  }
  for (const auto& [target, workers] : movers) {
    for (const WorkerId worker : workers) {
      const Commands none = round.on(Left{worker});
      SPEEDO_ASSERT(none.empty());
    }
  }
  for (const Command& command : enter(movers)) commands.push_back(command);
  const bool deserted = std::ranges::none_of(
      members_, [&](const auto& each) { return each.second.group == group; });
  if (deserted) groups_.erase(group);
  return commands;
}

Commands Grouping::enter(const std::map<GroupId, std::vector<WorkerId>>& arrivals) {
  Commands commands;
  for (const auto& [group, workers] : arrivals) {
    for (const WorkerId worker : workers) members_.at(worker).group = group;
    for (const Command& command : groups_[group].on(Joined{workers})) commands.push_back(command);
  }
  return commands;
}

// A worker's own name decides before its host's.
Grouping::GroupId Grouping::first_group(const std::string& name) {
  for (const std::string& each : {name, host_of(name)}) {
    for (std::size_t i = 0; i < listed_.size(); ++i) {
      if (!each.empty() && std::ranges::find(listed_[i], each) != listed_[i].end()) return i;
    }
  }
  return next_group_++;
}

void Grouping::regroup_if_due() {
  if (!listed_.empty()) return;
  const auto settled = [&](WorkerId worker) { return speeds_.settled(worker); };
  if (!std::ranges::all_of(founders_, settled)) return;
  const bool due = regroup_interval_ > 0 && reports_ >= regroup_interval_;
  const bool newly_settled = std::ranges::any_of(members_, [&](const auto& each) {
    return !placed_.contains(each.first) && settled(each.first);
  });
  if (!due && !newly_settled) return;
  if (due) {
    speeds_.renew();
    reports_ = 0;
  }
  regroup();
}

void Grouping::regroup() {
  founders_.clear();
  for (const auto& [worker, member] : members_) {
    if (speeds_.settled(worker)) placed_.insert(worker);
  }
  std::map<GroupId, std::vector<WorkerId>> present;
  for (const auto& [worker, member] : members_) present[member.target].push_back(worker);
  for (const auto& cluster : cluster_speeds(speeds_.known(), group_count_)) {
    const GroupId group = members_.at(cluster.front()).target;
    if (present.at(group) == cluster) continue;
    for (const WorkerId worker : cluster) members_.at(worker).target = next_group_;
    next_group_ += 1;
  }
}

Result<void> check_grouping(const StrategyOptions& options) {
  if (!options.groups.empty() && (options.group_count > 0 || options.regroup_interval > 0)) {
    return Error{ErrorCode::kUsage,
                 "listed groups (--groups FILE) contradict a number of groups (--groups N) and "
                 "--regroup-interval, which are for measured ones: leave one of them out"};
  }
  std::map<std::string, std::size_t> group_of;
  for (std::size_t i = 0; i < options.groups.size(); ++i) {
    if (options.groups[i].empty()) {
      return Error{ErrorCode::kUsage, "--groups: group " + std::to_string(i + 1) + " is empty"};
    }
    for (const std::string& name : options.groups[i]) {
      const auto [known, inserted] = group_of.emplace(name, i);
      if (!name.empty() && (inserted || known->second == i)) continue;
      return Error{ErrorCode::kUsage,
                   name.empty() ? "--groups: group " + std::to_string(i + 1) + " has an empty name"
                                : "--groups: '" + name + "' stands in group " +
                                      std::to_string(known->second + 1) + " and in group " +
                                      std::to_string(i + 1) + ": name it once"};
    }
  }
  return {};
}

std::unique_ptr<Strategy> make_grouping(const StrategyOptions& options) {
  return std::make_unique<Grouping>(options);
}

}  // namespace speedo
