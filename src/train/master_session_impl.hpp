#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <speedo/base/limits.hpp>
#include <speedo/train/master_session.hpp>

#include "train/data_leases.hpp"
#include "train/host_flaps.hpp"
#include "train/periodic_job.hpp"
#include "train/store_absence.hpp"

namespace speedo {

// "1 worker", "3 workers".
inline std::string count_workers(std::uint64_t count) {
  return fmt::format("{} worker{}", count, count == 1 ? "" : "s");
}

// Whole ones, for messages.
inline std::int64_t seconds(Instant time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

// The state of MasterSession and one handler per event. Sources, master_session*.cpp: the dispatch
// here; _members (who is here), _watch (time: the silent, the stalled, too few), _work (runs),
// _merge (merges), _stages (from one stage to the next), _store (a store that is away, records
// of workers that are gone), _state (save and restore), _end (tests, snapshots, the end).
//
// What the strategy orders goes through queue_, first in, first out. A merge holds back all behind
// it until it is done, so a Train always sees the merges ordered before it.
//
// Invariant: peers_ and workers_ name each other.
// Invariant: queue_ and held_ are empty unless phase_ is kTraining.
// Invariant: while switching_ is not kNo, no Train is queued or held.
struct MasterSession::Impl {
  // A last snapshot that cannot be written is tried again after so long.
  static constexpr std::chrono::seconds kSnapshotRetryInterval{30};
  enum class Phase { kGathering, kTraining, kFinishing, kFinished };
  // From one stage to the next: runs under way are waited for, then the shell's answer.
  enum class Switching { kNo, kDraining, kEntering };
  enum class Departure { kFlap, kExcused };   // whether it counts against the host

  struct Worker {
    PeerId peer;
    std::string name;
    std::uint64_t uuid_high = 0, uuid_low = 0;
    bool ready = false;
    bool known = false;                   // to the strategy
    std::optional<RunId> run;             // outstanding
    bool ordered = false, finished = false;  // any run in this life
    std::uint64_t merged_run = kNoRun;    // see TrainMessage
    float merged_weight = 1.0F;
    double speed = 0.0;                   // samples computed per microsecond; 0: not measured
    Instant heard{0};                     // the last message
    Instant progressed{0};                // the last sign that the run gets on
    std::optional<std::uint64_t> progress;  // of the run, by its last beat
  };
  struct Report {                         // a contribution that lies in the store
    WorkerId worker;
    RunId run;
    float loss = 0.0F;
    Version base;
    std::uint64_t samples = 0;
    DataRange data;
    float weight = 1.0F;
  };
  struct MergeOrder {
    std::vector<Report> reports;
    bool mean = false;
  };
  struct MergeInFlight {
    MergeId id;
    MergeOrder order;
  };
  struct Ending {
    std::string reason;            // for the workers and the log
    std::optional<Error> error;
    bool test = false;             // at the last iteration, and to be waited for
    bool snapshot = false;
    bool stopped = false;          // somebody waits for this master to go
    bool diverged = false;         // the last iteration's test said so
  };

  Impl(MasterConfig config_in, StrategyFactory make);

  void handle(const master_event::Hello& event);
  void handle(const master_event::Ready& event);
  void handle(const master_event::Trained& event);
  void handle(const master_event::Leave& event);
  void handle(const master_event::Beat& event);
  void handle(const master_event::PeerLost& event);
  void handle(const master_event::Merged& event);
  void handle(const master_event::MergeFailed& event);
  void handle(const master_event::StageEntered& event);
  void handle(const master_event::StageFailed& event);
  void handle(const master_event::Tested& event);
  void handle(const master_event::TestFailed& event);
  void handle(const master_event::SnapshotDone& event);
  void handle(const master_event::SnapshotFailed& event);
  void handle(const master_event::StoreLost& event);
  void handle(const master_event::StoreBack& event);
  void handle(const master_event::StopRequested& event);
  void handle(const master_event::SnapshotRequested& event);
  void handle(const master_event::Tick& event);

  // Members.
  bool open() const { return phase_ == Phase::kGathering || phase_ == Phase::kTraining; }
  bool turned_away(const master_event::Hello& event);
  void end_earlier_lives(const master_event::Hello& event);
  void start_training();
  Worker* find(PeerId peer, std::uint64_t claimed);
  void remove(WorkerId worker, Departure departure);
  void refuse(PeerId peer, ErrorCode code, const std::string& reason);

  // Time.
  void watch_workers();
  void declare_dead(WorkerId id, const std::string& reason);
  std::uint64_t wanted() const;           // workers needed for training to start or go on
  bool short_of_workers() const { return open() && progress_.workers_alive < wanted(); }
  void update_pause();
  void watch_shortage();
  void give_up_waiting(const std::string& reason);
  void note_waiting();

  // The store.
  void watch_store();
  bool is_wanted(WorkerId worker) const;  // a record of a worker that is gone
  void erase_records_of_gone();

  // Runs.
  void tell(const Event& event);          // to the strategy; queues what it orders
  void order(const Merge& command);
  void order(const Average& command);
  void order(const Discard& command);
  void order(const Train& command);
  Report take_report(WorkerId worker);
  void pump();
  bool busy() const { return in_flight_.has_value() || switching_ == Switching::kEntering; }
  void send_trains();
  void measure_speed(Worker& worker, const TrainedMessage& message) const;
  std::uint64_t shares_for(const Worker& worker) const;
  double slowest_speed() const;

  // Merges.
  void start_merge();
  float weight_of(const Report& report, const MergeOrder& merge) const;
  std::uint64_t staleness(const Report& report) const;
  void count_merged(const std::vector<Report>& merged, Version version);
  void count_rejected(const std::vector<RunId>& runs);
  void count_not_finite(std::uint64_t runs);

  // Stages.
  std::uint32_t stage_index() const;
  const Schedule& schedule() const { return config_.stages[stage_index()]; }
  std::uint64_t test_interval() const;
  float rate_scale() const;
  bool stage_over() const;
  void set_stage(std::uint64_t stage, std::uint64_t start);
  void begin_drain();
  bool drained() const;
  bool enter_next_stage();                // false: something has to be waited for
  void begin_stage();
  void note_groups();

  // State. `merged`: as of the end of this merge.
  std::string encode_state(const MergeOrder* merged) const;
  Result<void> restore(std::string_view bytes);

  // Tests, snapshots, the end.
  bool awaits_last_test() const;
  void start_due_jobs();
  void fail(const Error& error);          // the store is gone
  void end_superseded(const Error& error);
  void begin_end(Ending ending);
  void send_away(PeerId peer);
  // A master that begins at the end may be there for the last snapshot alone.
  bool worth_saving() const {
    return iteration() > first_iteration_ || first_iteration_ >= config_.max_iteration;
  }
  void end_if_complete();
  void fail_end(const Error& error);      // keeps the first error
  void await_room(const Error& error);
  void retry_snapshot();

  std::uint64_t iteration() const { return progress_.iteration; }
  template <class... Args>
  void note(bool warning, fmt::format_string<Args...> format, Args&&... args) {
    out_.emplace_back(master_command::Note{
        warning, clip_text(fmt::format(format, std::forward<Args>(args)...))});
  }
  void ignore(PeerId peer, std::string_view what);

  MasterConfig config_;
  StrategyFactory make_;
  std::unique_ptr<Strategy> strategy_;
  Phase phase_ = Phase::kGathering;
  MasterProgress progress_;
  MasterCommands out_;                    // of the event being handled

  std::map<WorkerId, Worker> workers_;
  std::map<PeerId, WorkerId> peers_;
  HostFlaps flaps_;
  std::uint64_t next_run_ = 0;
  std::uint64_t next_merge_ = 0;

  std::uint64_t stage_ = 0;               // counted on when stages repeat
  std::uint64_t first_iteration_ = 0;     // of this master
  Switching switching_ = Switching::kNo;

  DataLeases leases_;
  std::map<WorkerId, Report> reports_;    // what the strategy has not decided on
  std::deque<std::variant<MergeOrder, WorkerId>> queue_;   // merges, and workers to train
  std::deque<WorkerId> held_;             // to train once training goes on
  std::optional<MergeInFlight> in_flight_;
  Version version_;
  std::uint64_t not_finite_in_row_ = 0;
  std::uint64_t rejected_before_ = 0;     // runs below were ordered before the last that counted

  PeriodicJob tests_{0};
  PeriodicJob snapshots_;
  Ending ending_;
  std::string last_failure_;              // why the last worker left that could not work
  // At the next point where no merge is under way and the last runs had finite losses.
  bool snapshot_wanted_ = false;
  std::optional<std::uint64_t> diverged_at_;  // the last iteration whose test had no finite loss
  std::optional<Instant> snapshot_retry_at_;  // the last snapshot could not be written

  // Time as this process has been awake: what it slept through did not pass.
  Instant now_{0};
  std::optional<Instant> last_tick_;
  std::optional<Instant> short_since_, short_noted_, alone_since_;
  StoreAbsence store_absence_;
  std::set<WorkerId> gone_;               // whose records may still be in the store
};

}  // namespace speedo
