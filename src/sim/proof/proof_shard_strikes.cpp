// What befalls jobs that are merged in parts: mergers beside the servers, and servers together with
// them. As in proof_strikes.cpp, each says when it struck and when it was felt.

#include "sim/proof/proof_cluster.hpp"

namespace speedo::sim {

// False: not a fault of a part's merger, of its server, or of the manifest of all parts.
bool ProofCluster::strike_shard(const Fault& fault, const FaultMark& mark) {
  if (fault.kind < kFirstShardFault) return false;
  if (strike_manifest(fault, mark)) return true;
  strike_shard_store(fault, mark);
  const std::size_t part = fault.target % shards_.size();
  if (!shards_[part].work) return true;
  ProofShard& shard = *shards_[part].work;
  WorkerNode& node = *shards_[part].node;
  switch (fault.kind) {
    case FaultKind::kKillShard: kill_shard(part, fault.extra == 1, fault.length, mark); break;
    case FaultKind::kKillShardInMerge:
      shard.strike_next_merge({fault.extra, [this, part, back = fault.length, mark, &shard] {
                                 mark.struck();
                                 if (shard.is_merging()) mark.felt();
                                 kill_shard(part, false, back, {});
                               }});
      break;
    case FaultKind::kFreezeShard:
      freeze_marked(node, fault.length, shard.is_open(), mark);
      break;
    case FaultKind::kCutShard: {
      ProofMaster* const master = current_master();
      if (master == nullptr) break;
      mark.struck();
      if ((fault.extra & 1U) != 0) cut(master->node().id(), node.id(), fault.length, mark);
      if ((fault.extra & 2U) != 0) cut(node.id(), master->node().id(), fault.length, mark);
      break;
    }
    case FaultKind::kCutShardFromStore:
      if (node.process().alive()) mark.struck();
      cut_from_store(shard.clients(), fault.length, mark);
      break;
    default: break;
  }
  return true;
}

// False: not a fault of it.
bool ProofCluster::strike_manifest(const Fault& fault, const FaultMark& mark) {
  ProofMaster* const master = current_master();
  if (fault.kind == FaultKind::kKillMasterAtManifest) {
    if (master != nullptr) {
      master->strike_at_manifest(mark, [this, master] {
        world_.kill(master->node(), false);
        replace_master_soon();
      });
    }
    world_.queue().after(fault.length, [this] { ensure_master(); });
    return true;
  }
  if (fault.kind != FaultKind::kCutMasterAtManifest) return false;
  if (master == nullptr) return true;
  master->strike_at_manifest(mark, [this, master, mark, &fault] {
    cut_from_store(master->clients(), fault.length, mark);
    const std::size_t server = 1 + fault.target % (servers_.count() - 1);
    if (fault.extra == 1) servers_.at(server).restart(Survives::kNothing, Instant{0});
  });
  return true;
}

void ProofCluster::strike_shard_store(const Fault& fault, const FaultMark& mark) {
  const std::size_t part = fault.target % shards_.size();
  StoreServer& server = servers_.at(part);
  switch (fault.kind) {
    case FaultKind::kRestartShardStore:
      return server.restart(Survives::kAll, fault.length, mark);
    case FaultKind::kShardStoreLosesAll:
      return server.restart(Survives::kNothing, fault.length / 4, mark);
    case FaultKind::kShardAndStoreLost:
      if (shards_[part].work) kill_shard(part, fault.extra == 1, fault.length, {});
      return server.restart(Survives::kNothing, fault.length / 4, mark);
    case FaultKind::kShardStoreLosesInMerge:
      return server.restart_at_operation(fault.extra, Survives::kNothing, [this, mark] {
        mark.struck();
        if (any_master_merging()) mark.felt();
      });
    default: return;
  }
}

// Its place is taken by a new process after `back`. Felt if a master had opened it.
void ProofCluster::kill_shard(std::size_t part, bool silent, Instant back, const FaultMark& mark) {
  ShardPlace& place = shards_[part];
  WorkerNode& node = *place.node;
  if (node.process().alive()) {
    mark.struck();
    if (place.work->is_open()) mark.felt();
  }
  world_.kill(node, silent);
  world_.queue().after(back, [this, part, &node] {
    if (shards_[part].node == &node && !finished_) start_shard(part);
  });
}

}  // namespace speedo::sim
