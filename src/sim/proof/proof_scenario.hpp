#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <speedo/base/clock.hpp>
#include <speedo/store/record_store.hpp>
#include <speedo/train/master_session.hpp>

#include "sim/fault_kind.hpp"

namespace speedo::sim {

struct Fault {
  Instant when;
  FaultKind kind = FaultKind::kKillWorker;
  std::uint64_t target = 0;  // of the workers, or parts, modulo their number
  Instant length;
  std::uint64_t extra = 0;
};

// Everything about one simulated training, drawn from a seed.
struct Scenario {
  std::uint64_t seed = 0;
  std::string strategy;           // as it was asked for
  std::uint64_t workers = 2;
  std::uint64_t elements = 24;    // of the problem
  MasterConfig config;            // but for what a master finds out itself
  std::uint64_t publish_interval = 0;
  bool mixes_messages = false;    // the network does not keep their order
  float learning_rate = 0.1F, momentum = 0.0F, noise = 0.0F;
  Instant run_time, exchange_time, merge_time, latency;
  std::vector<double> slowness;   // of each worker
  // Whether masters share memory, and which workers are on their machine; empty: none.
  std::vector<bool> shares_memory;
  // Servers of the store, each of which has a part of the weights and, but for some, a merger
  // beside it; 1: the master merges.
  std::size_t servers = 1;
  std::vector<bool> has_shard;    // by part; empty: the job is not merged in parts
  bool shard_copies = true;       // each part has one on the next server
  // Else parts are of steps, or there are none.
  bool has_weights_in_parts() const {
    return !has_shard.empty() && !any_replicated(config.stages);
  }
  std::size_t chunk_elements = kChunkElements;
  std::vector<Fault> faults;      // in their order
  Instant faults_end, deadline;   // of the whole training
};

// The names that a scenario can be drawn for: those of the registry, and "hybrid".
std::vector<std::string> scenario_names();

struct WorkerCounts {
  std::uint64_t min = 2, max = 64;
};
// Requires: `names` are of scenario_names(), at least one; the seed chooses among them.
// `in_parts`: a part of the jobs that can be are merged in parts.
Scenario draw_scenario(std::uint64_t seed, const std::vector<std::string>& names,
                       WorkerCounts workers, bool in_parts = true);

// One line for people.
std::string to_string(const Scenario& scenario);

}  // namespace speedo::sim
