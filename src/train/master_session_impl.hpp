#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include <speedo/base/limits.hpp>
#include <speedo/train/master_session.hpp>

#include "train/data_leases.hpp"
#include "train/periodic_job.hpp"

namespace speedo {

// The state of MasterSession and one handler per event. Sources: master_session.cpp (dispatch,
// time), master_session_members.cpp (who is here), master_session_work.cpp (runs and merges),
// master_session_end.cpp (tests, snapshots, the end).
//
// What the strategy orders goes through queue_, first in, first out. A merge holds back all behind
// it until it is done, so a Train always sees the merges ordered before it.
//
// Invariant: peers_ and workers_ name each other.
// Invariant: queue_ is empty unless phase_ is kTraining.
struct MasterSession::Impl {
  enum class Phase { kGathering, kTraining, kFinishing, kFinished };

  struct Worker {
    PeerId peer;
    std::string name;
    bool ready = false;
    std::optional<RunId> run;             // outstanding
    std::optional<Instant> run_started;   // known from the first Tick on
  };
  struct Report {                         // a contribution that lies in the store
    WorkerId worker;
    RunId run;
    float loss = 0.0F;
    Version base;
    std::uint64_t samples = 0;
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
  };

  Impl(MasterConfig config_in, std::unique_ptr<Strategy> strategy_in);

  void handle(const master_event::Hello& event);
  void handle(const master_event::Ready& event);
  void handle(const master_event::Trained& event);
  void handle(const master_event::Leave& event);
  void handle(const master_event::PeerLost& event);
  void handle(const master_event::Merged& event);
  void handle(const master_event::MergeFailed& event);
  void handle(const master_event::Tested& event);
  void handle(const master_event::TestFailed& event);
  void handle(const master_event::SnapshotDone& event);
  void handle(const master_event::SnapshotFailed& event);
  void handle(const master_event::StoreLost& event);
  void handle(const master_event::StopRequested& event);
  void handle(const master_event::Tick& event);

  // Members.
  bool open() const { return phase_ == Phase::kGathering || phase_ == Phase::kTraining; }
  std::uint64_t wanted() const;           // workers needed for training to start or go on
  bool short_of_workers() const { return open() && progress_.workers_alive < wanted(); }
  Worker* find(PeerId peer, std::uint64_t claimed);
  void remove(WorkerId worker);
  void refuse(PeerId peer, ErrorCode code, const std::string& reason);
  void start_training();
  void check_silent_workers();
  void check_joining();
  void note_waiting();

  // Work.
  void tell(const Event& event);          // to the strategy; queues what it orders
  void order(const Merge& command);
  void order(const Average& command);
  void order(const Discard& command);
  void order(const Train& command);
  Report take_report(WorkerId worker);
  void pump();
  void send_trains();
  void start_merge();
  void count_merged(const std::vector<Report>& merged, Version version);
  void count_not_finite(std::uint64_t runs);

  // Tests, snapshots, the end.
  void start_due_jobs();
  void begin_end(Ending ending);
  void end_if_complete();
  void fail_end(const Error& error);      // keeps the first error

  std::uint64_t iteration() const { return progress_.iteration; }
  template <class... Args>
  void note(bool warning, fmt::format_string<Args...> format, Args&&... args) {
    out_.emplace_back(master_command::Note{
        warning, clip_text(fmt::format(format, std::forward<Args>(args)...))});
  }
  void ignore(PeerId peer, std::string_view what);

  MasterConfig config_;
  std::unique_ptr<Strategy> strategy_;
  Phase phase_ = Phase::kGathering;
  MasterProgress progress_;
  MasterCommands out_;                    // of the event being handled

  std::map<WorkerId, Worker> workers_;
  std::map<PeerId, WorkerId> peers_;
  std::uint64_t next_worker_ = 0;
  std::uint64_t next_run_ = 0;
  std::uint64_t next_merge_ = 0;

  DataLeases leases_{config_.first_data_run};
  std::map<WorkerId, Report> reports_;    // what the strategy has not decided on
  std::deque<std::variant<MergeOrder, WorkerId>> queue_;   // merges, and workers to train
  std::optional<MergeInFlight> in_flight_;
  Version version_;
  std::uint64_t not_finite_in_row_ = 0;

  PeriodicJob tests_;
  PeriodicJob snapshots_;
  Ending ending_;

  std::optional<Instant> now_;
  std::optional<Instant> waiting_since_, waiting_noted_;
};

}  // namespace speedo
