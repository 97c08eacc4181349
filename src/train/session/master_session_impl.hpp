#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <speedo/train/master_session.hpp>

#include "base/note_interval.hpp"
#include "train/session/awake_clock.hpp"
#include "train/session/divergence.hpp"
#include "train/session/ending.hpp"
#include "train/session/job_figures.hpp"
#include "train/session/lost_runs.hpp"
#include "train/session/membership.hpp"
#include "train/session/merge_tally.hpp"
#include "train/session/runs.hpp"
#include "train/session/session_commands.hpp"
#include "train/session/shard_leases.hpp"
#include "train/session/shard_ratios.hpp"
#include "train/session/stage_switch.hpp"
#include "train/session/state_gathering.hpp"
#include "train/session/state_seats.hpp"
#include "train/session/store_absence.hpp"
#include "train/session/tests_and_snapshots.hpp"
#include "train/session/work_queue.hpp"
#include "train/session/worker_shortage.hpp"

namespace speedo::record {
class Session;
}

namespace speedo {

// The coordinator: it takes each event to the parts that it concerns and asks the strategy. Each
// part below owns its state and states what holds of it; between them:
//
// Invariant: nothing is ordered, held or undecided unless phase_ is kTraining.
// Invariant: while a stage drains or is entered, nobody is told to train.
// Invariant: there is an ending_ exactly from kFinishing on, unless this master was superseded.
//
// Sources: master_session.cpp (dispatch, workers, time), _work (runs, merges, stages), _lost (what
// was not merged), _end (tests, snapshots, the store, the end), _states (of workers, for
// snapshots), _state (save and restore), _status (for those who watch).
struct MasterSession::Impl {
 public:
  Impl(MasterConfig config, StrategyFactory make);

  MasterCommands on(const MasterEvent& event);
  // `merged`: as of the end of this merge, if all its contributions are merged.
  void save_told(const MergeOrder* merged, record::Session& state) const;
  std::string save(const MergeOrder* merged) const;
  Result<void> restore(std::string_view bytes);
  const MasterProgress& progress() const { return progress_; }
  JobStatus status() const;
  const TrainingId& training() const { return training_; }
  bool finished() const { return phase_ == Phase::kFinished; }

 private:
  enum class Phase { kGathering, kTraining, kFinishing, kFinished };
  using Departure = Membership::Departure;

  void handle(const master_event::Hello& event);
  void handle(const master_event::Ready& event);
  void handle(const master_event::Trained& event);
  void handle(const master_event::Leave& event);
  void handle(const master_event::StateSaved& event);
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

  bool open() const { return phase_ == Phase::kGathering || phase_ == Phase::kTraining; }
  bool is_training() const { return phase_ == Phase::kTraining; }
  std::uint64_t iteration() const { return tally_.iteration(); }
  const Schedule& schedule() const { return stages_.schedule(); }
  std::uint64_t test_interval_of(const Schedule& stage) const;
  void show_progress();
  void check_invariants() const;

  // Workers.
  std::optional<WorkerId> sender(PeerId peer, std::uint64_t claimed);
  void ignore(PeerId peer, std::string_view what);
  void remove(WorkerId id, Departure departure, const std::string& why);
  void note_leave(const std::string& name, std::uint32_t code, const std::string& reason);
  void gone_at_end(WorkerId id);
  void declare_dead(WorkerId id, const std::string& reason);
  void watch_workers();
  void start_training();
  WorkerShortage::View shortage_view() const;
  bool waits_for_own(WorkerId id) const;
  void introduce_ready();
  void update_pause();
  void watch_shortage();
  void watch_store();
  void erase_records_of_gone();

  // Runs, merges, stages.
  void tell(const Event& event);  // to the strategy; queues what it orders
  void order(const Merge& command);
  void order(const Average& command);
  void order(const Discard& command);
  void order(const Train& command);
  void pump();
  bool busy() const {
    return work_.is_merging() || stages_.is_entering() || lost_runs_.is_under_way();
  }
  bool asks_before_trains();
  void send_trains();
  void send_train(WorkerId id, const ShardLeases::Lease& lease);
  std::uint64_t shards_for(WorkerId worker);
  void start_merge();
  void expect_merge();
  master_command::StartMerge merge_command(MergeId id, const MergeOrder& merge) const;
  bool is_astray(const TrainedMessage& message) const;
  void part_from(WorkerId id, std::uint64_t version);
  bool drained() const;
  void note_left_out(std::uint64_t stages);
  void note_left_data();
  bool enter_next_stage();  // false: something has to be waited for
  void begin_stage();

  // What was not merged, and why not.
  bool is_kept_by_worker() const { return is_elastic(schedule().update.kind); }
  bool waits_for_lost(const MergeOrder& merge) const;
  void leave_out(const MergeOrder& merge, const master_event::Merged& event);
  void note_left_out(const Contribution& contribution, const master_event::Merged& event,
                     const char* then);
  void put_off(MergeOrder merge, const master_event::Merged& event);
  void note_short_round(const MergeOrder& merge);
  bool can_train_again(WorkerId id) const;
  void train_lost_again();
  void give_up_lost(WorkerId id);

  // Tests, snapshots, the end.
  void start_due_jobs();
  void ask_for_states();
  bool gathers_at_end() const;
  void finish_snapshot();
  void send_all_away();
  void end_if_diverged();
  void end_as_store_loses();
  void fail(const Error& error);  // the store is gone
  void end_superseded(const Error& error);
  void begin_end(Ending::Plan plan);
  bool is_last(std::optional<std::uint64_t> iteration) const;
  void end_if_complete();

  const MasterConfig config_;
  const StrategyFactory make_;
  TrainingId training_;
  std::unique_ptr<Strategy> strategy_;  // of the stage
  Phase phase_ = Phase::kGathering;

  AwakeClock clock_;
  Membership members_;
  WorkerShortage shortage_;
  StoreAbsence store_absence_;
  NoteInterval store_leave_notes_;   // that workers leave since the store fails them
  std::uint64_t store_leaves_ = 0;   // that were not said
  ShardLeases leases_;
  Runs runs_;
  ShardRatios ratios_;
  WorkQueue work_;
  LostRuns lost_runs_;
  MergeTally tally_;
  JobFigures figures_;
  Divergence divergence_;
  std::string fault_;  // of the last run that was not finite: what, of which worker
  StageSwitch stages_;
  TestsAndSnapshots jobs_;
  StateGathering states_;
  StateSeats seats_;
  bool workers_are_sent_away_ = false;  // at the end
  // Runs that began together last: in rounds those of a round, one that is done again included.
  std::uint64_t started_together_ = 0;
  std::optional<Ending> ending_;
  // All that a round's merge depends on, as of the one that was last said to be expected: a run
  // begins by the next one's number, and ends by their count.
  struct Expectation {
    RunId next_run;
    std::uint64_t runs, workers;
    bool operator==(const Expectation&) const = default;
  };
  std::optional<Expectation> expected_;
  std::optional<WeightsCheck> weights_check_;

  SessionCommands out_;      // of the event being handled
  MasterProgress progress_;  // only shown, by show_progress()
};

}  // namespace speedo
