#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <speedo/base/clock.hpp>
#include <speedo/base/ids.hpp>
#include <speedo/train/master_session.hpp>

namespace speedo {

// What a worker says its process is; both 0: nothing.
using ProcessUuid = std::pair<std::uint64_t, std::uint64_t>;

// What each worker trains: its run under way and whether that gets on, how fast the worker is, and
// which of its contributions it has still to be told of.
//
// Invariant: a worker has at most one run under way, and no run number is given twice.
// Thread safety: one thread. Times come from the caller.
class Runs {
 public:
  struct Order {
    RunId run;
    std::uint64_t merged_run = kNoRun;  // see TrainMessage
    float merged_weight = 1.0F;
  };

  explicit Runs(std::uint64_t first_run) : next_(first_run) {}
  // Runs below it were given by an earlier master.
  void begin_above(std::uint64_t next_run);
  RunId next() const { return {next_}; }

  // A worker is to have its first run: what its process contributed as another worker, before its
  // connection broke, it may not know to be merged yet.
  void arrive(WorkerId worker, const ProcessUuid& process);
  // What a process may not know to be merged: of those that are gone, and of one that is here.
  struct Told {
    ProcessUuid process;
    std::uint64_t merged_run = kNoRun;
    float merged_weight = 1.0F;
  };
  const std::map<WorkerId, Told>& departed() const { return departed_; }
  // The workers that this process was.
  std::vector<WorkerId> departed_of(const ProcessUuid& process) const;
  std::optional<Told> told(WorkerId worker, const ProcessUuid& process) const;
  // The same of an earlier master's worker, whose process may come here.
  void depart(WorkerId worker, const Told& told);

  // Requires: no run of the worker is under way.
  Order start(WorkerId worker, Instant now);
  // The worker's last run, and the contribution that its next order will tell of, if one was
  // merged. Requires: was_ordered().
  Order last(WorkerId worker) const;
  bool is_under_way(WorkerId worker, RunId run) const;
  bool is_busy(WorkerId worker) const;
  bool any_under_way() const { return count_under_way() > 0; }
  std::uint64_t count_under_way() const;
  std::vector<std::pair<WorkerId, RunId>> under_way() const;
  // A sign of life of the run that is under way; one of another run changes nothing.
  void beat(WorkerId worker, const BeatMessage& message, Instant now);
  // The run that has made no progress for so long, if one is under way. 0: any time is fine.
  std::optional<RunId> stalled(WorkerId worker, Instant now, std::chrono::seconds limit) const;
  // Requires: the run is under way.
  void finish(WorkerId worker, const TrainedMessage& message);
  // The contribution of a run was merged with this weight: its worker learns of it with the next
  // order, or if it is gone, its process with the first one that it has as another worker.
  void merged(WorkerId worker, RunId run, float weight);

  // The worker is gone. Whether it ever had an order, so that it may have left records in the
  // store.
  bool remove(WorkerId worker, const ProcessUuid& process);
  bool was_ordered(WorkerId worker) const { return workers_.contains(worker); }

  // Shards of the data for the worker's next run, by its speed: 1 for the slowest and for one that
  // was not measured, at most kShardsPerRunMax.
  std::uint64_t shards_by_speed(WorkerId worker) const;

  void show(MasterProgress& progress) const;

 private:
  struct Worker {                           // that was given a run
    std::optional<RunId> run;               // under way
    RunId last_run;
    Instant progressed{0};                  // time of the last sign that it gets on
    std::optional<std::uint64_t> progress;  // by its last beat
    std::uint64_t merged_run = kNoRun;
    float merged_weight = 1.0F;
    std::uint64_t told_run = kNoRun;        // the last that an order told of, maybe in vain
    float told_weight = 1.0F;
    double speed = 0.0;  // samples computed per microsecond; 0: not measured
  };
  static void measure_speed(Worker& worker, const TrainedMessage& message);
  double slowest_speed() const;

  std::map<WorkerId, Worker> workers_;
  std::map<WorkerId, Told> departed_;  // that may come back
  std::uint64_t next_;
  PhaseTimes phases_;  // of all reported runs
  Traffic traffic_;
  ReadFaults read_faults_;
};

}  // namespace speedo
