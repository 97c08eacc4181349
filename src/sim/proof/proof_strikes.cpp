// What each kind of fault does to a simulated cluster, when it struck, and when it was felt: a
// fault that nobody noticed has proven nothing.

#include <algorithm>
#include <array>
#include <memory>

#include <speedo/base/assert.hpp>

#include "checkpoint/training_file.hpp"
#include "sim/proof/proof_cluster.hpp"
#include "store/record_codec.hpp"

namespace speedo::sim {
namespace {

constexpr Instant kFlapPeriod = std::chrono::seconds(1);
constexpr Instant kOneSecond = std::chrono::seconds(1);
constexpr int kFlapsFelt = 2;  // one death is not flapping
constexpr double kBadStoreErrors = 0.02, kBadStoreRepeats = 0.1;
constexpr double kBadNetworkLate = 0.05, kBadNetworkTwice = 0.05, kBadNetworkBreaks = 0.01;

}  // namespace

void ProofCluster::strike(const Fault& fault) {
  ends_undisturbed_ = false;
  const FaultMark mark = ledger_.drawn(fault.kind);
  if (strike_worker(fault, mark) || strike_connection(fault, mark)) return;
  if (strike_master(fault, mark) || strike_shard(fault, mark)) return;
  strike_store(fault, mark);
}

// False: not a fault of a worker's process.
bool ProofCluster::strike_worker(const Fault& fault, const FaultMark& mark) {
  const std::size_t index = fault.target % places_.size();
  Place& place = places_[index];
  WorkerNode& node = *place.node;
  const bool extra = fault.extra == 1;
  switch (fault.kind) {
    case FaultKind::kKillWorker: kill_worker(index, extra, fault.length, mark); return true;
    case FaultKind::kFreezeWorker:
      freeze_marked(node, fault.length, place.work->at_work(), mark);
      return true;
    case FaultKind::kStallWorker:
      if (node.process().alive()) mark.struck();
      place.work->stall_until(node.process().now() + fault.length, mark);
      return true;
    case FaultKind::kFlapWorker: flap_worker(index, fault.extra, mark); return true;
    case FaultKind::kLeaveWorker:
      if (node.process().running()) {
        mark.struck();
        leaving_[node.id().value] = mark;
        node.take(worker_event::StopRequested{"a signal"});
      }
      world_.queue().after(fault.length,
                           [this, index] { kill_worker(index, false, Instant{0}, {}); });
      return true;
    case FaultKind::kKillWorkerInPut:
      place.work->clients().strike_at_operation(
          fault.extra, [this, index, mark](const KvOperation& operation) {
            mark.struck();
            if (operation.kind == KvOperation::Kind::kSet) mark.felt();
            kill_worker(index, false, kOneSecond, {});
          });
      return true;
    case FaultKind::kWorkerClock:
      disturb_clock(node.id(), node.process(), fault, mark);
      return true;
    case FaultKind::kBadLoss:
      if (node.process().alive()) mark.struck();
      place.work->spoil_next(extra, mark);
      return true;
    default: return false;
  }
}

// False: not a fault of what lies between a worker and the others.
bool ProofCluster::strike_connection(const Fault& fault, const FaultMark& mark) {
  Place& place = places_[fault.target % places_.size()];
  WorkerNode& node = *place.node;
  switch (fault.kind) {
    case FaultKind::kResetConnection: {
      const bool at_work = place.work->at_work();  // until its session hears of it
      if (!world_.break_connections(node)) return true;
      mark.struck();
      if (at_work) mark.felt();
      return true;
    }
    case FaultKind::kCutWorker: {
      ProofMaster* const master = current_master();
      if (master == nullptr) return true;
      mark.struck();
      if ((fault.extra & 1U) != 0) cut(master->node().id(), node.id(), fault.length, mark);
      if ((fault.extra & 2U) != 0) cut(node.id(), master->node().id(), fault.length, mark);
      return true;
    }
    case FaultKind::kCutWorkerFromStore:
      if (node.process().alive()) mark.struck();
      cut_from_store(place.work->clients(), fault.length, mark);
      return true;
    default: return false;
  }
}

bool ProofCluster::strike_master(const Fault& fault, const FaultMark& mark) {
  ProofMaster* master = current_master();
  const bool extra = fault.extra == 1;
  const auto start_later = [this, &fault] {
    world_.queue().after(fault.length, [this] { ensure_master(); });
  };
  const auto merge_strike = [&](std::optional<Instant> stands_still) {
    if (master != nullptr) master->strike_next_merge({fault.extra, stands_still, mark});
  };
  switch (fault.kind) {
    case FaultKind::kKillMaster:
      if (master != nullptr) {
        mark.struck();
        if (master->is_training()) mark.felt();
        world_.kill(master->node(), extra);
      }
      start_later();
      return true;
    case FaultKind::kKillMasterInMerge:
      merge_strike(std::nullopt);
      start_later();
      return true;
    case FaultKind::kKillMasterInFiles:
      if (master != nullptr) {
        master->strike_in_files(fault.extra / 2, fault.extra % 2 == 0, mark);
      }
      return true;
    case FaultKind::kFreezeMaster:
      if (master != nullptr) {
        freeze_marked(master->node(), fault.length, master->is_training(), mark);
      }
      if (extra) start_master(false);
      return true;
    case FaultKind::kFreezeMasterInMerge:
      merge_strike(fault.length);
      world_.queue().after(kOneSecond, [this] {
        if (!finished_) start_master(false);
      });
      return true;
    case FaultKind::kMasterClock:
      if (master != nullptr) {
        disturb_clock(master->node().id(), master->node().process(), fault, mark);
      }
      return true;
    case FaultKind::kCutMasterFromStore:
      if (master == nullptr) return true;
      mark.struck();
      cut_from_store(master->clients(), fault.length, mark);
      return true;
    case FaultKind::kRivalMaster:
      if (any_master_alive()) mark.struck();
      start_master(false, mark);
      return true;
    default: return false;
  }
}

StoreServer& ProofCluster::server_of(const Fault& fault) {
  return servers_.at(fault.target % servers_.count());
}

void ProofCluster::strike_store(const Fault& fault, const FaultMark& mark) {
  StoreServer& server = server_of(fault);
  switch (fault.kind) {
    case FaultKind::kRestartStore: server.restart(Survives::kAll, fault.length, mark); return;
    case FaultKind::kStoreLosesSecond:
      server.restart(Survives::kAllButLastSecond, fault.length / 4, mark);
      return;
    case FaultKind::kStoreLosesAll:
      server.restart(Survives::kNothing, fault.length / 4, mark);
      return;
    case FaultKind::kRestartStoreInMerge:
      server.restart_at_operation(
          fault.extra, fault.length.count() % 2 == 0 ? Survives::kAll : Survives::kNothing,
          [this, mark] {
            mark.struck();
            if (any_master_merging()) mark.felt();
          });
      return;
    case FaultKind::kDamageContribution:
      server.damage_next_contribution(
          [this, mark, number = fault.target % servers_.count()](const std::string& key) {
            contribution_damaged({number, key, mark});
          });
      return;
    case FaultKind::kDamageCheckpoint: damage_checkpoint(fault, mark); return;
    case FaultKind::kOtherTraining: write_other_training(mark); return;
    case FaultKind::kBadStore:
      mark.struck();
      set_client_faults({kBadStoreErrors, kBadStoreRepeats, mark});
      world_.queue().after(fault.length, [this] { set_client_faults({}); });
      return;
    case FaultKind::kBadNetwork:
      mark.struck();
      network_.faults = {kBadNetworkLate, kBadNetworkTwice, kBadNetworkBreaks, mark};
      world_.queue().after(fault.length, [this] { network_.faults = {}; });
      return;
    default: SPEEDO_ASSERT(false);
  }
}

// Of the newest by its name: record, model or state.
void ProofCluster::damage_checkpoint(const Fault& fault, const FaultMark& mark) {
  std::vector<FoundRecord> found;
  {
    ProcessFiles files(disk_);
    found = find_records(kSnapshotPrefix, nullptr, files);
  }
  if (found.empty()) return;
  start_checker_.files_disturbed();
  const auto folder = found.front().path.parent_path();
  const std::array<std::filesystem::path, 3> parts{found.front().path,
                                                   folder / found.front().record.model().name(),
                                                   folder / found.front().record.state().name()};
  if (disk_.damage(parts[fault.extra % parts.size()], fault.extra < parts.size(), mark)) {
    mark.struck();
  }
}

// Beside this training's, and newer than all of them; the note of which one goes on stays.
void ProofCluster::write_other_training(const FaultMark& mark) {
  const auto note = disk_.files().find(training_file(kSnapshotPrefix, scenario_.config.job));
  if (note == disk_.files().end()) return;
  start_checker_.files_disturbed();
  const SimulatedDisk::File kept = note->second;
  MasterConfig config = scenario_.config;
  config.training = {random_.next(), random_.next()};
  config.start_iteration = config.max_iteration - 1;
  config.term = newest_term_ + 1;
  caffe::SolverParameter solver;
  solver.set_snapshot_prefix(kSnapshotPrefix);
  caffe::NetParameter model;
  for (const float each : problem_.start()) model.add_layer()->add_blobs()->add_data(each);
  caffe::SolverState state;
  ProcessFiles files(disk_);
  CheckpointWriter writer(solver, config.job, {}, files);
  const bool written = writer.begin(config.training) &&
                       writer.write({.iteration = static_cast<std::int64_t>(config.start_iteration),
                                     .model = model,
                                     .state = state,
                                     .session = MasterSession(config).save(),
                                     .model_digest = problem_.layout().digest()});
  SPEEDO_ASSERT(written);
  disk_.put(training_file(kSnapshotPrefix, config.job), kept);
  disk_.mark(record_path(kSnapshotPrefix, config.start_iteration), mark);
  mark.struck();
}

// Its place is taken by a new process after `back`. Felt if it owed its master a report.
void ProofCluster::kill_worker(std::size_t place, bool silent, Instant back,
                               const FaultMark& mark) {
  WorkerNode& node = *places_[place].node;
  if (node.process().alive()) mark.struck();
  if (node.process().alive() && places_[place].work->at_work()) mark.felt();
  world_.kill(node, silent);
  world_.queue().after(back, [this, place, &node] {
    if (places_[place].node == &node && !finished_) start_worker(place);
  });
}

void ProofCluster::flap_worker(std::size_t place, std::uint64_t times, const FaultMark& mark) {
  const auto hits = std::make_shared<int>(0);
  for (std::uint64_t i = 0; i < times; ++i) {
    world_.queue().after(i * kFlapPeriod, [this, place, mark, hits] {
      if (places_[place].node->process().alive()) {
        mark.struck();
        if (++*hits >= kFlapsFelt) mark.felt();
      }
      kill_worker(place, false, kFlapPeriod / 2, {});
    });
  }
}

// Felt if it had work, and something of it had to wait.
template <class Node>
void ProofCluster::freeze_marked(Node& node, Instant time, bool at_work, const FaultMark& mark) {
  if (!node.process().running()) return;
  mark.struck();
  world_.freeze(node);
  world_.queue().after(time, [&node, at_work, mark] {
    if (node.process().alive() && at_work && node.process().has_waiting()) mark.felt();
    node.process().thaw();
  });
}

// Felt when its session is told the time.
void ProofCluster::disturb_clock(NodeId node, Process& process, const Fault& fault,
                                 const FaultMark& mark) {
  if (process.alive()) mark.struck();
  clocks_[node.value] = mark;
  if (fault.extra == 1) return process.leap_clock(fault.length);
  process.stop_clock();
  world_.queue().after(fault.length, [&process] { process.go_on_clock(); });
}

void ProofCluster::cut(NodeId from, NodeId to, Instant time, const FaultMark& mark) {
  network_.cut(from, to, mark);
  world_.queue().after(time, [this, from, to] { network_.heal(from, to); });
  const WorldTiming timing = world_.timing();
  world_.queue().after(timing.silence, [this, from, to] {
    if (network_.is_cut(from, to)) world_.lose_silent(from, to);
  });
}

void ProofCluster::cut_from_store(StoreClients& clients, Instant time, const FaultMark& mark) {
  ends_undisturbed_ = false;  // which may have begun since the fault was drawn
  clients.disconnect(mark);
  world_.queue().after(time, [&clients] { clients.connect(); });
}

// What was the newest of its worker; felt when the master rejects it.
void ProofCluster::contribution_damaged(const Damage& damage) {
  damage.mark.struck();
  const std::string key = servers_.name_of(damage.server, damage.key);
  // Of a chunk: its manifest, which says of which run it is, comes later.
  damaged_[key.substr(0, key.find(':', job_prefix(scenario_.config.job).size()))] = damage;
  for (const auto& [owner, run] : newest_runs_) {
    const auto [term, worker] = owner;
    const std::string name = contribution_key(term, worker);
    if (key != RecordKeys(scenario_.config.job, name).manifest()) continue;
    lineage_.may_be_lost(RunId{run});
    spoilt_[run] = damage.mark;
  }
}

}  // namespace speedo::sim
