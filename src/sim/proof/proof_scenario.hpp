#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <speedo/base/clock.hpp>
#include <speedo/train/master_session.hpp>

namespace speedo::sim {

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
};
inline constexpr int kFaultKinds = static_cast<int>(FaultKind::kBadNetwork) + 1;
const char* to_string(FaultKind kind);

struct Fault {
  Instant when;
  FaultKind kind = FaultKind::kKillWorker;
  std::uint64_t target = 0;  // of the workers, modulo their number
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
  std::vector<Fault> faults;      // in their order
  Instant faults_end, deadline;   // of the whole training
};

// The names that a scenario can be drawn for: those of the registry, and "hybrid".
std::vector<std::string> scenario_names();

struct WorkerRange {
  std::uint64_t min = 2, max = 64;
};
// Requires: `names` are of scenario_names(), at least one; the seed chooses among them.
Scenario draw_scenario(std::uint64_t seed, const std::vector<std::string>& names,
                       WorkerRange workers);

// One line for people.
std::string to_string(const Scenario& scenario);

}  // namespace speedo::sim
