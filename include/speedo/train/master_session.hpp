#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <speedo/base/clock.hpp>
#include <speedo/base/digest.hpp>
#include <speedo/base/ids.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/base/result.hpp>
#include <speedo/store/store_address.hpp>
#include <speedo/train/job_status.hpp>
#include <speedo/train/merge_job.hpp>
#include <speedo/train/messages.hpp>
#include <speedo/train/schedule.hpp>
#include <speedo/train/strategy.hpp>
#include <speedo/train/training_id.hpp>
#include <speedo/train/weights_check.hpp>

namespace speedo {

// A connection as the shell numbers it. Several may belong to incarnations of one worker.
using PeerId = Id<struct PeerTag>;

struct MasterConfig {
  std::uint64_t workers_start = 1;      // ready workers that start training (--workers)
  std::uint64_t workers_min = 1;        // with fewer alive, training pauses (MIN of MIN:MAX)
  std::uint64_t workers_max = 0;        // more are turned away, and connect again; 0: no limit
  std::uint64_t start_iteration = 0;    // --startIter, or of a resumed snapshot
  std::uint64_t max_iteration = 0;      // end when start + merged reaches it (--maxIter)
  std::uint64_t test_interval = 0;      // merges between tests; 0: never, not even at the end
  bool test_at_start = false;
  std::uint64_t snapshot_interval = 0;  // merges between snapshots; 0: only at the end
  bool snapshot_at_end = true;
  bool offset_shards = false;     // workers count steps of their own: shards are no data
  bool snapshot_workers = false;  // snapshots hold what each worker has alone, see src/train/states
  // What a stop waits for them, at most.
  std::chrono::milliseconds stop_patience{12000};
  std::uint64_t seats = 0;        // states of such a snapshot that wait in the store for workers
  std::chrono::seconds join_timeout{0};       // --join-timeout; 0: wait for ever
  std::chrono::seconds below_min_timeout{0};  // a pause ends training after so long; 0: never
  std::chrono::seconds worker_timeout{0};   // a worker not heard of for so long is dead; 0: never
  std::chrono::seconds stall_timeout{0};    // so is one whose run makes no progress; 0: never
  // A store that is out of reach for so long ends training; 0: at once.
  std::chrono::seconds store_timeout{0};
  // So many runs in a row without a finite loss and contribution end training (--on-nan).
  std::uint64_t non_finite_max = kNonFiniteRunsMax;
  bool shard_by_speed = false;              // in rounds a faster worker trains more shards
  // In rounds, by the name of a worker or its host: so many shards, 1 or more and on average, for
  // each of a worker that is not named. Requires: empty if shard_by_speed.
  std::map<std::string, double> shard_ratios;
  std::vector<Schedule> stages = {Schedule{}};  // one after another, repeated; at least one
  // What workers must compute on, as they say it of themselves, whatever the number of a GPU: where
  // theirs is to have the bits of this master's products. "": anything.
  std::string device = {};
  bool same_devices = false;  // all on what the first of them computes on
  // The bits of the result depend on what each worker has alone, which is lost with it.
  bool minds_lost_states = false;
  Digest model;
  StoreAddress store;                   // sent to workers, as job is; at most kTextMax bytes each
  std::string job;
  std::string memory;                   // sent to workers: the master's MemoryDoor; "": none
  TrainingId training;                  // a restored state has its own
  std::uint64_t term = 0;              // of this master, see MasterStore::claim_master
  Version first_version;                // of the weights published before training
  // RunIds start here. A restarted master of the same job must start above its predecessor (the
  // wall clock's microseconds will do), so that nothing the earlier one was owed is taken for its
  // own.
  std::uint64_t first_run = 0;
  // Steps of the data stream that an earlier run of the job has used up.
  std::uint64_t first_step = 0;
};

// How long this master may be silent before its workers give the connection up, for the Welcome;
// 0: for ever. Not less than it bears of them: else a link so bad that --worker-timeout was raised
// for it would still end at the workers.
inline std::uint64_t silence_ms_of(const MasterConfig& config) {
  if (config.worker_timeout.count() == 0) return 0;
  const std::chrono::milliseconds silence = config.worker_timeout;
  return static_cast<std::uint64_t>(std::max(silence, kConnectionTimeout).count());
}

// What happened, as the shell tells it.
namespace master_event {
struct Hello { PeerId peer; HelloMessage message; };
struct Ready { PeerId peer; ReadyMessage message; };
struct Trained { PeerId peer; TrainedMessage message; };
struct Leave { PeerId peer; LeaveMessage message; };
struct StateSaved { PeerId peer; StateSavedMessage message; };
struct Beat { PeerId peer; BeatMessage message; };
struct PeerLost { PeerId peer; std::string reason; };       // connection gone
// The merge is in memory and published. `rejected`: workers whose contribution was not finite,
// missing or corrupt; they are not in the result. No worker left, or put off (is_put_off): nothing
// changed, version as before.
struct Merged {
  MergeId merge;
  Version version;
  std::vector<WorkerId> rejected;
  std::optional<WeightsCheck> check = std::nullopt;  // of replicated updates, the newest
  // Of `rejected`: not finite; or finite, and too large to be merged.
  std::vector<WorkerId> not_finite = {}, outliers = {};
};
struct MergeFailed { MergeId merge; Error error; };         // store gone for good: training ends
struct StageEntered { Version version; };                   // answer to EnterStage
struct StageFailed { Error error; };
struct Tested {
  std::uint64_t iteration;
  float accuracy, loss;    // NaN: the net has none
  bool diverged = false;   // a loss of the test is not finite
};
struct TestFailed { Error error; };
struct SnapshotDone { std::uint64_t iteration; };
struct SnapshotFailed { Error error; };
// Unreachable, after all its retries: waited for, up to MasterConfig::store_timeout. Or for good:
// kSuperseded, another master has the job. Then nothing more is written, and the workers are told
// to look for it.
struct StoreLost { Error error; };
struct StoreBack {};                                        // it answers
struct StopRequested {                                      // signal: end
  std::string reason;
  bool snapshot = true;  // even if MasterConfig::snapshot_at_end says no
};
struct SnapshotRequested {};                                // signal: write one and go on
struct Tick { Instant now; };                               // at least once a second
}  // namespace master_event
using MasterEvent =
    std::variant<master_event::Hello, master_event::Ready, master_event::Trained,
                 master_event::Leave, master_event::StateSaved, master_event::Beat,
                 master_event::PeerLost,
                 master_event::Merged, master_event::MergeFailed, master_event::StageEntered,
                 master_event::StageFailed, master_event::Tested, master_event::TestFailed,
                 master_event::SnapshotDone, master_event::SnapshotFailed,
                 master_event::StoreLost, master_event::StoreBack, master_event::StopRequested,
                 master_event::SnapshotRequested, master_event::Tick>;

// What to do, in order.
namespace master_command {
struct SendWelcome { PeerId peer; WelcomeMessage message; };
struct SendRefused { PeerId peer; RefusedMessage message; };  // then close the connection
struct SendTrain { PeerId peer; TrainMessage message; };
struct SendStop { PeerId peer; StopMessage message; };
struct SendSaveState { PeerId peer; SaveStateMessage message; };
using StartMerge = MergeJob;
// In rounds: the merge that will be ordered if all goes well, without its id and state, as soon as
// its contributions are being made. Nothing is promised: another one, or none, may follow.
struct ExpectMerge { StartMerge merge; };
// The next merges are of this stage: make ready for it and publish the weights as its workers read
// them. Only given when no merge is under way and no worker runs.
struct EnterStage {
  std::uint32_t stage = 0;
  std::string state;
};
// On a copy of the weights at this point: the shell takes it before it starts a later merge. Each
// is answered exactly once, by ...Done/Tested or ...Failed; training waits only if the next one of
// the same kind falls due before.
struct StartTest { std::uint64_t iteration; };
struct StartSnapshot { std::uint64_t iteration; };
// With MasterConfig::snapshot_workers each StartSnapshot is followed by one of these, and is not
// answered before: whose states are in the store by now, in the order of their seats.
struct FinishSnapshot {
  std::uint64_t iteration;
  std::vector<WorkerId> workers;
};
// Nothing more will be read of what this worker, who is gone, has in the store: erase it.
struct EraseWorker { WorkerId worker; };
// The state at this seat was taken: erase it.
struct EraseSeat { std::uint64_t seat; };
// Training ends: a store that is out of reach is waited for no longer, and what is under way there
// comes to its end soon, done or failed.
struct StopWaitingForStore {};
// A line for the log. `warning` also goes to standard error's attention.
struct Note { bool warning; std::string text; };
// Training is over; stop the processes. `error` empty: success. Always the last command; events
// after it are ignored. A test still under way is of no more interest.
struct Finish { std::optional<Error> error; };
}  // namespace master_command
using MasterCommand =
    std::variant<master_command::SendWelcome, master_command::SendRefused,
                 master_command::SendTrain, master_command::SendStop,
                 master_command::SendSaveState, master_command::StartMerge,
                 master_command::ExpectMerge, master_command::EnterStage, master_command::StartTest,
                 master_command::StartSnapshot, master_command::FinishSnapshot,
                 master_command::EraseWorker, master_command::EraseSeat,
                 master_command::StopWaitingForStore, master_command::Note,
                 master_command::Finish>;
using MasterCommands = std::vector<MasterCommand>;

// Whether workers wait for another master after one that ended so: it was replaced, or starting
// again can help.
bool another_follows(const std::optional<Error>& end);

using StrategyFactory =
    std::function<Result<std::unique_ptr<Strategy>>(const StrategyOptions& options)>;

// The master's decisions: membership, iteration count, stages, weights of contributions, tests,
// snapshots, duplicates, time-outs, the end; the schedule itself is the strategy's. Pure: no clock
// (Tick), no I/O (commands).
//
// Invariant: at most one merge, one test and one snapshot is under way.
// Invariant: a worker has at most one run outstanding, and its Train follows the merge of its last
// contribution.
// Invariant: every shard of the data stream is held by at most one worker at a time,
// and merged at most once.
// Invariant: the contributions of StartMerge commands are distinct (worker, run) pairs over a job.
class MasterSession {
 public:
  // Requires: check_schedule() and `make` succeed for every stage.
  explicit MasterSession(MasterConfig config, StrategyFactory make = make_strategy);
  ~MasterSession();
  // Everything that a new master needs to go on: iteration and counters, stage, what is left of the
  // data stream, the strategy's own state. Workers are not part of it: they join anew. What was
  // reported and not merged is given out again.
  std::string save() const;
  // Goes on from it, with any number of workers; before the first event. The state's iteration and
  // data position replace those of the configuration; a stage that had all its iterations is over,
  // so progress().stage may be one after the state's. Errors: kCorrupt, kMismatch (other
  // stages); nothing changed.
  Result<void> restore(std::string_view state);
  MasterCommands on(const MasterEvent& event);
  const MasterProgress& progress() const;
  // As of the last event. Takes time and memory that grow with the workers: not for every event.
  JobStatus status() const;
  const TrainingId& training() const;
  bool finished() const;

  // What a state of save() says of itself. Order: a checkpoint is newer than another of the same
  // training if its master's term is higher, or the same and its iteration is.
  struct Origin {
    TrainingId training;
    std::uint64_t term = 0, iteration = 0;
    bool is_newer_than(const Origin& other) const {
      return term != other.term ? term > other.term : iteration > other.iteration;
    }
  };
  // Error: kCorrupt.
  static Result<Origin> origin_of(std::string_view state);
  // The step of the data stream at which one that reads them in order goes on from a state of
  // save(): behind it only what a slow or dead worker held alone is left out. Error: kCorrupt.
  static Result<std::uint64_t> next_step_of(std::string_view state);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace speedo
