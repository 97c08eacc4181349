#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/plan/cost_cluster.hpp"

namespace speedo::sim {

// How many machines of each kind are used; empty: all that there are.
using UsedMachines = std::vector<std::uint64_t>;

// Which machines may be tried: all; one of each kind alone, with master and store; and in the order
// described, the master's and the store's kind first, twice as many again and again, and whole
// kinds. Requires: check() accepts the cluster.
std::vector<UsedMachines> machine_choices(const ClusterCosts& cluster);

// The cluster of those machines.
ClusterCosts part_of(const ClusterCosts& cluster, const UsedMachines& used);

// Where master, servers, shards' mergers and workers are: the same text, the same places.
std::string places_text(const ClusterCosts& cluster, std::uint64_t workers);

}  // namespace speedo::sim
