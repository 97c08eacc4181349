// When faults befall a simulated cluster, and their end: then everything is healed, and training
// must reach its own. What they do is in proof_strikes.cpp.

#include <algorithm>

#include "sim/proof/proof_cluster.hpp"

namespace speedo::sim {
namespace {

constexpr Instant kSecond = std::chrono::seconds(1);

}  // namespace

void ProofCluster::plan_faults() {
  EventQueue& queue = world_.queue();
  for (const Fault& fault : scenario_.faults) {
    if (fault.kind == FaultKind::kStoreLosesSecond) {
      queue.at(std::max(Instant{0}, fault.when - kSecond), [this, &fault] {
        server_of(fault).remember();
      });
    }
    queue.at(fault.when, [this, &fault] {
      if (finished_) return;
      log_.add(to_string(fault.kind), fault.target % places_.size(), fault.extra);
      strike(fault);
    });
  }
  queue.at(scenario_.faults_end, [this] { end_faults(); });
}

void ProofCluster::set_client_faults(const StoreClient::Faults& faults) {
  client_faults_ = faults;
  for (const Place& place : places_) place.work->clients().set_faults(faults);
  for (const auto& each : masters_) each->master->clients().set_faults(faults);
  for (const ShardPlace& shard : shards_) {
    if (shard.work) shard.work->clients().set_faults(faults);
  }
}

void ProofCluster::end_faults() {
  if (finished_) return;
  log_.add("faults end");
  set_client_faults({});
  network_.faults = {};
  network_.heal_all();
  servers_.cancel_restart();
  for (const auto& each : masters_) {
    each->master->cancel_strike();
    if (each->master->node().process().frozen()) each->master->node().process().thaw();
    each->master->node().process().go_on_clock();
    each->master->clients().connect();
  }
  for (std::size_t i = 0; i < places_.size(); ++i) {
    WorkerNode& node = *places_[i].node;
    if (node.process().frozen()) node.process().thaw();
    node.process().go_on_clock();
    places_[i].work->clients().connect();
    places_[i].work->clients().cancel_strike();
    if (!node.process().alive()) start_worker(i);
  }
  for (std::size_t part = 0; part < shards_.size(); ++part) {
    if (!shards_[part].work) continue;
    Process& process = shards_[part].node->process();
    if (process.frozen()) process.thaw();
    shards_[part].work->clients().connect();
    shards_[part].work->cancel_strike();
    if (!process.alive()) start_shard(part);
  }
  ensure_master();
}

}  // namespace speedo::sim
