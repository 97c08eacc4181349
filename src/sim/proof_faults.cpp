// What befalls a simulated cluster, and its end: then everything is healed, and training must reach
// its own.

#include <algorithm>

#include <speedo/base/assert.hpp>

#include "sim/proof_cluster.hpp"

namespace speedo::sim {
namespace {

constexpr Instant kFlapPeriod = std::chrono::seconds(1);
constexpr Instant kSecond = std::chrono::seconds(1);
constexpr double kBadStoreErrors = 0.02, kBadStoreRepeats = 0.1;
constexpr double kBadNetworkLate = 0.05, kBadNetworkTwice = 0.05, kBadNetworkBreaks = 0.01;

}  // namespace

void ProofCluster::plan_faults() {
  EventQueue& queue = world_.queue();
  for (const Fault& fault : scenario_.faults) {
    if (fault.kind == FaultKind::kStoreLosesSecond) {
      queue.at(std::max(Instant{0}, fault.when - kSecond), [this] { server_.remember(); });
    }
    queue.at(fault.when, [this, &fault] {
      if (finished_) return;
      log_.add(to_string(fault.kind), fault.target % seats_.size(), fault.extra);
      strike(fault);
    });
  }
  queue.at(scenario_.faults_end, [this] { end_faults(); });
}

void ProofCluster::strike(const Fault& fault) {
  if (strike_worker(fault) || strike_master(fault)) return;
  strike_store(fault);
}

// False: not a fault of a worker.
bool ProofCluster::strike_worker(const Fault& fault) {
  const std::size_t index = fault.target % seats_.size();
  Seat& seat = seats_[index];
  WorkerNode& node = *seat.node;
  const bool extra = fault.extra == 1;
  ProofMaster* master = current_master();
  switch (fault.kind) {
    case FaultKind::kKillWorker: kill_worker(index, extra, fault.length); return true;
    case FaultKind::kFreezeWorker: freeze(node, fault.length); return true;
    case FaultKind::kStallWorker:
      seat.trainer->stall_until(node.process().now() + fault.length);
      return true;
    case FaultKind::kFlapWorker:
      for (std::uint64_t i = 0; i < fault.extra; ++i) {
        world_.queue().after(i * kFlapPeriod,
                             [this, index] { kill_worker(index, false, kFlapPeriod / 2); });
      }
      return true;
    case FaultKind::kLeaveWorker:
      if (node.process().running()) node.take(worker_event::StopRequested{"a signal"});
      world_.queue().after(fault.length, [this, index] { kill_worker(index, false, Instant{0}); });
      return true;
    case FaultKind::kKillWorkerInPut:
      seat.trainer->client().strike_at_operation(
          fault.extra, [this, index] { kill_worker(index, false, kSecond); });
      return true;
    case FaultKind::kWorkerClock: disturb_clock(node.process(), fault); return true;
    case FaultKind::kResetConnection: world_.break_connections(node); return true;
    case FaultKind::kCutWorker:
      if (master == nullptr) return true;
      if ((fault.extra & 1U) != 0) cut(master->node().id(), node.id(), fault.length);
      if ((fault.extra & 2U) != 0) cut(node.id(), master->node().id(), fault.length);
      return true;
    case FaultKind::kCutWorkerFromStore:
      seat.trainer->client().connected = false;
      world_.queue().after(fault.length,
                           [trainer = seat.trainer.get()] { trainer->client().connected = true; });
      return true;
    case FaultKind::kBadLoss: seat.trainer->spoil_next(extra); return true;
    default: return false;
  }
}

bool ProofCluster::strike_master(const Fault& fault) {
  ProofMaster* master = current_master();
  const bool extra = fault.extra == 1;
  const auto start_later = [this, &fault] {
    world_.queue().after(fault.length, [this] { ensure_master(); });
  };
  switch (fault.kind) {
    case FaultKind::kKillMaster:
      if (master != nullptr) world_.kill(master->node(), extra);
      start_later();
      return true;
    case FaultKind::kKillMasterInMerge:
      if (master != nullptr) master->strike_next_merge({fault.extra, std::nullopt});
      start_later();
      return true;
    case FaultKind::kFreezeMaster:
      if (master != nullptr) freeze(master->node(), fault.length);
      if (extra) start_master(false);
      return true;
    case FaultKind::kFreezeMasterInMerge:
      if (master != nullptr) master->strike_next_merge({fault.extra, fault.length});
      world_.queue().after(kSecond, [this] {
        if (!finished_) start_master(false);
      });
      return true;
    case FaultKind::kMasterClock:
      if (master != nullptr) disturb_clock(master->node().process(), fault);
      return true;
    case FaultKind::kCutMasterFromStore:
      if (master == nullptr) return true;
      master->client().connected = false;
      world_.queue().after(fault.length, [master] { master->client().connected = true; });
      return true;
    case FaultKind::kRivalMaster: start_master(false); return true;
    default: return false;
  }
}

void ProofCluster::strike_store(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kRestartStore: server_.restart(Survives::kAll, fault.length); return;
    case FaultKind::kStoreLosesSecond:
      server_.restart(Survives::kAllButLastSecond, fault.length / 4);
      return;
    case FaultKind::kStoreLosesAll:
      server_.restart(Survives::kNothing, fault.length / 4);
      return;
    case FaultKind::kRestartStoreInMerge:
      server_.restart_at_operation(
          fault.extra, fault.length.count() % 2 == 0 ? Survives::kAll : Survives::kNothing);
      return;
    case FaultKind::kDamageContribution:
      server_.damage_next("contribution/");
      data_losses_ += 1;
      return;
    case FaultKind::kBadStore:
      set_client_faults(kBadStoreErrors, kBadStoreRepeats);
      world_.queue().after(fault.length, [this] { set_client_faults(0.0, 0.0); });
      return;
    case FaultKind::kBadNetwork:
      network_.late_chance = kBadNetworkLate;
      network_.twice_chance = kBadNetworkTwice;
      network_.break_chance = kBadNetworkBreaks;
      world_.queue().after(fault.length, [this] {
        network_.late_chance = network_.twice_chance = network_.break_chance = 0.0;
      });
      return;
    default: SPEEDO_ASSERT(false);
  }
}

// Its place is taken by a new process after `back`.
void ProofCluster::kill_worker(std::size_t seat, bool silent, Instant back) {
  WorkerNode& node = *seats_[seat].node;
  world_.kill(node, silent);
  world_.queue().after(back, [this, seat, &node] {
    if (seats_[seat].node == &node && !finished_) start_worker(seat);
  });
}

void ProofCluster::freeze(WorkerNode& node, Instant time) {
  world_.freeze(node);
  world_.queue().after(time, [&node] { node.process().thaw(); });
}

void ProofCluster::freeze(MasterNode& node, Instant time) {
  world_.freeze(node);
  world_.queue().after(time, [&node] { node.process().thaw(); });
}

void ProofCluster::disturb_clock(Process& process, const Fault& fault) {
  if (fault.extra == 1) return process.leap_clock(fault.length);
  process.stop_clock();
  world_.queue().after(fault.length, [&process] { process.go_on_clock(); });
}

void ProofCluster::cut(NodeId from, NodeId to, Instant time) {
  network_.cut(from, to);
  world_.queue().after(time, [this, from, to] { network_.heal(from, to); });
  const WorldTiming timing = world_.timing();
  world_.queue().after(timing.silence, [this, from, to] {
    if (network_.is_cut(from, to)) world_.lose_silent(from, to);
  });
}

void ProofCluster::set_client_faults(double error, double repeat) {
  error_chance_ = error;
  repeat_chance_ = repeat;
  for (const Seat& seat : seats_) {
    seat.trainer->client().error_chance = error;
    seat.trainer->client().repeat_chance = repeat;
  }
  for (const auto& each : masters_) {
    each->master->client().error_chance = error;
    each->master->client().repeat_chance = repeat;
  }
}

void ProofCluster::end_faults() {
  if (finished_) return;
  log_.add("faults end");
  set_client_faults(0.0, 0.0);
  network_.late_chance = network_.twice_chance = network_.break_chance = 0.0;
  network_.heal_all();
  server_.cancel_restart();
  for (const auto& each : masters_) {
    each->master->cancel_strike();
    if (each->master->node().process().frozen()) each->master->node().process().thaw();
    each->master->node().process().go_on_clock();
    each->master->client().connected = true;
  }
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    WorkerNode& node = *seats_[i].node;
    if (node.process().frozen()) node.process().thaw();
    node.process().go_on_clock();
    seats_[i].trainer->client().connected = true;
    seats_[i].trainer->client().cancel_strike();
    if (!node.process().alive()) start_worker(i);
  }
  ensure_master();
}

}  // namespace speedo::sim
