#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <speedo/base/clock.hpp>
#include <speedo/store/parameter_store.hpp>
#include <speedo/train/checkpoint.hpp>

#include "base/answer.hpp"
#include "store/shared/shared_store.hpp"
#include "train/job/job_nets.hpp"
#include "train/job/job_thread.hpp"
#include "train/job/master_options.hpp"
#include "train/job/master_work.hpp"

namespace speedo {

// The real MasterWork: one job's nets, store and merger.
class JobMaster : public MasterWork {
 public:
  // The job's store, and shared memory before its records; null: none is shared.
  struct Stores {
    std::shared_ptr<ParameterStore> all;
    std::shared_ptr<SharedStore> shared = nullptr;
  };
  using WriteSnapshot = std::function<Result<void>(const SnapshotParts& parts)>;

  // Training begins from `start`. The solver in `options.spec` has a seed; the store is fenced.
  // Errors: those of make_merger.
  static Result<std::unique_ptr<JobMaster>> create(const MasterOptions& options,
                                                   const TrainerParts& parts,
                                                   std::unique_ptr<JobNets> nets,
                                                   Stores stores, Checkpoint start,
                                                   WriteSnapshot write_snapshot);

  // What ends the waiting for a store, while there is no session yet to decide on it.
  struct StartLimits {
    std::chrono::seconds store_timeout{0};  // of waiting for a store that is out of reach
    std::function<std::optional<std::string>()> poll_stop;  // a reason: wait no longer
    const Clock* clock = nullptr;                           // null: the platform's
  };
  // Puts the job into the store, and the weights as workers of this stage read them; gives their
  // version. Blocking. Errors: those of the store; kUnavailable if stopped.
  Result<Version> begin(std::uint32_t stage, std::string state, const StartLimits& limits);

  void merge(master_command::StartMerge job,
             std::function<void(Result<MergeResult>)> done) override;
  void expect(master_command::StartMerge job) override;
  void enter_stage(std::uint32_t stage, std::string state,
                   std::function<void(Result<Version>)> done) override;
  void test(std::function<void(Result<std::vector<TestScores>>)> done) override;
  void snapshot(std::uint64_t iteration, std::function<void(Result<void>)> done) override;
  void finish_snapshot(const master_command::FinishSnapshot& command) override;
  void stop_tests() override { nets_->stop_tests(); }
  void watch(Instant now, std::function<void(Result<void>)> seen) override;
  void erase_worker(WorkerId worker) override;
  void erase_seat(std::uint64_t seat) override;
  const PartTerms* part_terms() const override { return parts_ ? &*parts_ : nullptr; }
  void stop_waiting() override;

  // Removes what workers have put, of whichever master, and what they were handed. Weights and job
  // stay, for a resumed run.
  void erase_contributions();
  // Tells workers that are away, and a later master, that the job is over.
  void put_end();

 private:
  JobMaster(const MasterOptions& options, Platform& platform, std::unique_ptr<JobNets> nets,
            Stores stores, WriteSnapshot write_snapshot);
  Result<Version> wait_for_start(Answer<Result<Version>>& published, const StartLimits& limits);
  Result<std::unique_ptr<Merger>> make_job_merger(const MasterOptions& options,
                                                  const TrainerParts& parts, Checkpoint start);
  Result<void> put_job();
  // A snapshot that waits for its copy of the weights, or for word of the workers' states.
  struct OpenSnapshot {
    std::uint64_t iteration = 0;
    std::function<void(Result<void>)> done;
    std::shared_ptr<const Merger::Copy> copy = nullptr;
    std::optional<std::vector<WorkerId>> workers = std::nullopt;
  };
  void write_if_complete();
  void write_files(OpenSnapshot snapshot);
  Result<StateOfWorker> state_of(WorkerId worker, std::uint64_t iteration) const;
  Result<void> look_after_store();
  Result<void> probe_servers();
  Result<bool> has_blob(std::string_view key, const std::string& value);
  void erase_records_of_gone();
  Result<void> erase_records(std::uint64_t worker);
  std::shared_ptr<RecordStore> records() const;

  Platform& platform_;
  const std::shared_ptr<ParameterStore> store_;
  const std::shared_ptr<SharedStore> shared_;
  const WriteSnapshot write_snapshot_;
  const std::string job_record_;
  std::optional<PartTerms> parts_;
  std::string parts_record_;               // empty: not in parts
  const std::uint64_t term_;
  const bool snapshot_workers_;
  const std::vector<UpdateSpec> stages_;
  std::uint64_t contribution_elements_ = 0;  // of the longest stage
  std::optional<Instant> watched_at_;
  std::atomic<bool> watching_{false};
  std::atomic<bool> store_away_{false};  // as the last operation of either housekeeper found it
  std::mutex mutex_;
  std::optional<OpenSnapshot> open_snapshot_;  // guarded by mutex_
  std::deque<std::uint64_t> gone_;  // workers whose records are to be erased; guarded by mutex_
  // These four have threads, whose work uses what stands above them.
  const std::unique_ptr<JobNets> nets_;
  std::unique_ptr<Merger> merger_;
  JobThread erasing_;  // apart, as it may take long: watching must not wait for it
  JobThread housekeeping_;
};

}  // namespace speedo
