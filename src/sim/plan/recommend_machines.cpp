#include "sim/plan/recommend_machines.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "sim/plan/cost_exchange.hpp"

namespace speedo::sim {
namespace {

std::uint64_t count_machines(const ClusterCosts& cluster) {
  std::uint64_t count = 0;
  for (const MachineCosts& machine : cluster.machines) count += machine.count;
  return count;
}

std::size_t kind_of(const ClusterCosts& cluster, const std::string& machine) {
  return hosts_of(cluster)[host_of(cluster, machine)].kind;
}

// Kinds of machines in the order in which they are taken: the master's first.
std::vector<std::size_t> order_of_kinds(const ClusterCosts& cluster) {
  std::vector<std::size_t> kinds(cluster.machines.size());
  std::iota(kinds.begin(), kinds.end(), std::size_t{0});
  const auto masters = kinds.begin() + static_cast<std::ptrdiff_t>(
                                           kind_of(cluster, cluster.master.machine));
  std::rotate(kinds.begin(), masters, masters + 1);
  return kinds;
}

// Several, but fewer than all.
std::set<std::uint64_t> sizes_tried(const ClusterCosts& cluster,
                                    const std::vector<std::size_t>& kinds) {
  const std::uint64_t all = count_machines(cluster);
  std::set<std::uint64_t> sizes;
  for (std::uint64_t size = 2; size < all; size *= 2) sizes.insert(size);
  std::uint64_t whole_kinds = 0;
  for (const std::size_t kind : kinds) {
    whole_kinds += cluster.machines[kind].count;
    if (whole_kinds > 1 && whole_kinds < all) sizes.insert(whole_kinds);
  }
  return sizes;
}

UsedMachines first_machines(const ClusterCosts& cluster, const std::vector<std::size_t>& kinds,
                            std::uint64_t size) {
  UsedMachines used(cluster.machines.size(), 0);
  used[kinds.front()] = 1;
  used[kind_of(cluster, cluster.store.machine)] = 1;
  std::uint64_t left = size - std::accumulate(used.begin(), used.end(), std::uint64_t{0});
  for (const std::size_t kind : kinds) {
    const std::uint64_t taken = std::min(left, cluster.machines[kind].count - used[kind]);
    used[kind] += taken;
    left -= taken;
  }
  return used;
}

// Where several servers may be, if that is said.
bool has_server_machine(const ClusterCosts& cluster, const UsedMachines& used) {
  const std::vector<std::string>& names = cluster.store.machines;
  if (names.empty()) return true;
  for (std::size_t kind = 0; kind < used.size(); ++kind) {
    const bool is_named = std::ranges::find(names, cluster.machines[kind].name) != names.end();
    if (is_named && used[kind] > 0) return true;
  }
  return false;
}

// One of several machines keeps the name that it has among them.
void keep_name(ClusterCosts& part, MachineCosts& machine) {
  const std::string before = machine.name;
  machine.name += "-0";
  for (std::string* name : {&part.store.machine, &part.master.machine}) {
    if (*name == before) *name = machine.name;
  }
  std::ranges::replace(part.store.machines, before, machine.name);
}

}  // namespace

std::vector<UsedMachines> machine_choices(const ClusterCosts& cluster) {
  std::vector<UsedMachines> choices = {{}};
  const std::vector<std::size_t> kinds = order_of_kinds(cluster);
  if (count_machines(cluster) == 1) return choices;
  for (const std::size_t kind : kinds) {
    if (cluster.machines[kind].count == 0) continue;
    choices.emplace_back(cluster.machines.size(), 0).at(kind) = 1;
  }
  for (const std::uint64_t size : sizes_tried(cluster, kinds)) {
    UsedMachines used = first_machines(cluster, kinds, size);
    if (has_server_machine(cluster, used)) choices.push_back(std::move(used));
  }
  return choices;
}

ClusterCosts part_of(const ClusterCosts& cluster, const UsedMachines& used) {
  ClusterCosts part = cluster;
  if (used.empty()) return part;
  for (std::size_t kind = 0; kind < used.size(); ++kind) {
    MachineCosts& machine = part.machines[kind];
    const bool is_one_of_several = used[kind] == 1 && machine.count > 1;
    machine.count = used[kind];
    if (is_one_of_several) keep_name(part, machine);
  }
  if (count_machines(part) == 1) {
    part.store.machine = part.master.machine = hosts_of(part).front().name;
    part.store.machines.clear();
  }
  return part;
}

std::string places_text(const ClusterCosts& cluster, std::uint64_t workers) {
  const std::vector<ClusterHost> hosts = hosts_of(cluster);
  std::string text = std::to_string(cluster.store.shards) + ';' +
                     hosts[host_of(cluster, cluster.master.machine)].name + ';';
  for (const std::size_t host : server_hosts(cluster)) text += hosts[host].name + ',';
  text += ';';
  if (const auto places = place_workers(cluster, workers)) {
    for (const std::size_t host : *places) text += hosts[host].name + ',';
  }
  return text;
}

}  // namespace speedo::sim
