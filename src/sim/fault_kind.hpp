#pragma once

namespace speedo::sim {

// What can go wrong. `length` and `extra` are those of the Fault.
enum class FaultKind {
  kKillWorker,          // and start it again after `length`; extra 1: with its machine
  kFreezeWorker,
  kStallWorker,         // its run computes no more, though the process lives
  kFlapWorker,          // killed again and again, `extra` times
  kLeaveWorker,         // told to stop by its user; another one takes its place after `length`
  kKillWorkerInPut,     // at the `extra`-th store operation from now
  kWorkerClock,         // extra 1: leaps by `length`; 0: stands still for it
  kResetConnection,
  kCutWorker,           // from the master, for `length`; extra: 1 to it, 2 from it, 3 both
  kCutWorkerFromStore,
  kBadLoss,             // the next run of this worker diverges; extra 1: only its contribution
  kKillMaster,          // a new one is started after `length`; extra 1: with its machine
  kKillMasterInMerge,
  kFreezeMaster,        // another one is started meanwhile if extra 1
  kFreezeMasterInMerge,
  kMasterClock,
  kCutMasterFromStore,
  kRivalMaster,         // another one is started while this one lives
  kRestartStore,        // with all data, down for `length`
  kStoreLosesSecond,
  kStoreLosesAll,
  kRestartStoreInMerge, // at the `extra`-th operation from now; `length` odd: all is lost
  kDamageContribution,  // a byte of the next one that is stored changes
  kBadStore,            // for `length` operations fail and are repeated
  kKillMasterInFiles,   // at the `extra`-th change of files from now, done or not
  kDamageCheckpoint,    // the newest: a file of it is cut off or changed
  kOtherTraining,       // somebody puts files of another training beside this one's
  kBadNetwork,          // for `length` messages are late, twice, or break their connection
  // Of jobs that are merged in parts; a target is a part, modulo their number.
  kKillShard,           // its merger, which is back after `length`; extra 1: with its machine
  kKillShardInMerge,    // at the `extra`-th store operation of its next merge
  kFreezeShard,
  kCutShard,            // from the master, for `length`; extra: 1 to it, 2 from it, 3 both
  kCutShardFromStore,   // from all servers
  kRestartShardStore,   // the part's server, with all data
  kShardStoreLosesAll,  // the part's server
  kShardAndStoreLost,   // merger and server, which loses all, at one time
  kShardStoreLosesInMerge,  // at the `extra`-th operation on it from now
  kKillMasterAtManifest,    // of a version whose parts are written, before it is there or after
  // The same, but the master is cut from the store for `length`; extra 1: meanwhile a server that
  // has no manifest loses all.
  kCutMasterAtManifest,
};
inline constexpr int kFaultKinds = static_cast<int>(FaultKind::kCutMasterAtManifest) + 1;
// Those before it befall every job.
inline constexpr FaultKind kFirstShardFault = FaultKind::kKillShard;
const char* to_string(FaultKind kind);

}  // namespace speedo::sim
