#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/train/update.hpp>

#include "sim/plan/cost_cluster.hpp"

namespace speedo::sim {

// By which way workers and master of a cluster exchange: servers of the store, mergers beside them,
// memory that is shared, a codec.

// Refuses what no job can have, naming the field. Error: kConfig.
Result<void> check_exchange(const ClusterCosts& cluster);
// What of such updates the cluster's way cannot do. Error: kUsage, saying what to leave out.
Result<void> check_exchange(const ClusterCosts& cluster, const UpdateSpec& update);

// Hosts of the store's servers, the first one's first. Requires: check_exchange() found nothing.
std::vector<std::size_t> server_hosts(const ClusterCosts& cluster);
// Of a record of the weights, the part that lies on each server.
std::vector<double> server_shares(const ClusterCosts& cluster);

// What the codec of that name costs on this net: as it is described, or with its usual ratio and
// no time. Errors: kUsage for an unknown name, and for one whose ratio only the net knows.
Result<CodecCosts> codec_of(const ClusterCosts& cluster, const std::string& name);

// A chunk of noise of a gradient's shape, most values small and some large: by it the bytes of
// codecs are known that depend on the values.
std::vector<float> usual_values();

// Workers of the master's machine exchange in memory.
bool shares_memory(const ClusterCosts& cluster);

// A line for people: "4 shards on worker-0 to worker-3, ...".
std::string describe_exchange(const ClusterCosts& cluster);

}  // namespace speedo::sim
