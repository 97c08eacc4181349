#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/digest.hpp>
#include <speedo/base/platform.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/batch_feed.hpp>
#include <speedo/core/solver.hpp>
#include <speedo/store/record_store.hpp>
#include <speedo/train/messages.hpp>
#include <speedo/train/update.hpp>
#include <speedo/train/worker_session.hpp>

namespace speedo {

class Backend;
class JobNets;
class Learner;
class MemoryDoor;
class Merger;
class SharedStore;
class WorkerMemory;
struct JobNetsOptions;
struct LearnerOptions;

// A job as the store's job blob holds it: what a worker needs besides its local data.
struct JobSpec {
  std::string solver_text;      // SolverParameter with the net inside (net_param), text format
  std::string base;             // folder of the prototxt on the master, tried for relative paths
  std::vector<UpdateSpec> stages = {UpdateSpec{}};
  bool offset_shards = false;        // SpeeDO's mode: worker k of N starts at k/N, reads on alone
  std::uint64_t expected_workers = 1;
  bool deterministic = false;  // the result depends on the seed and the number of workers only
  std::uint32_t step_parts = 1;  // in which steps of replicated updates are made
  bool snapshot_workers = false;  // snapshots hold what each worker has alone
};
std::string encode(const JobSpec& job);
Result<JobSpec> decode_job(const std::string& bytes);

// Where a worker with data of its own begins in them.
struct DataStart {
  std::uint64_t part = 0, parts = 1;
  bool operator==(const DataStart&) const = default;
};

// Creates the parts a trainer and a master need, on the threads that will use them; main supplies
// them.
struct TrainerParts {
  std::function<Result<std::unique_ptr<Backend>>()> make_backend;
  std::function<std::unique_ptr<FeedFactory>()> make_feeds;
  // The process' parsers that ended early, but for those that somebody took already. Any thread.
  // Null: there are none.
  std::function<std::uint64_t()> take_parser_deaths = nullptr;
  // Asked before a trainer builds a solver's nets; an error refuses the job. Null: all are taken.
  std::function<Result<void>(const JobSpec& job, const caffe::SolverParameter& solver,
                             const SolverOptions& options)>
      admit = nullptr;
  // Called before a job's backend is made, whose kernels it may settle; an error refuses the job.
  // Null: every job is computed alike.
  std::function<Result<void>(const JobSpec& job)> choose_kernels = nullptr;

  Platform* platform = &real_platform();  // where they run

  // Workers and masters of one machine exchange through memory that they share: arrays that are
  // contributed lie in such, and a master has a door where its workers find it. Null: it has none.
  bool shares_memory = false;
  // Records at least as long are read while they are being written, where that is worth while.
  std::uint64_t ahead_bytes_min = std::uint64_t{4} << 20U;
  std::function<Result<std::unique_ptr<MemoryDoor>>(std::shared_ptr<SharedStore> store,
                                                    std::uint64_t term)>
      open_door = nullptr;
  // What stands in for the job's nets, where something else is to be learned. Null: nothing.
  std::function<Result<std::unique_ptr<Learner>>(const LearnerOptions& options)> make_learner =
      nullptr;
  std::function<Result<std::unique_ptr<JobNets>>(const JobNetsOptions& options)> make_job_nets =
      nullptr;
  // May put itself between a master and its merger. Null: nobody does.
  std::function<std::unique_ptr<Merger>(std::unique_ptr<Merger> merger)> watch_merger = nullptr;
};

// Net and update rule on a thread of their own. Reads weights from the store, trains one run,
// writes the contribution, reports. Work is queued and done in order; callbacks run on the
// trainer's thread and must be quick (they send a message to the actor). Thread safety: all methods
// from any thread.
class Trainer {
 public:
  // Cancels, and waits for the work under way. Callbacks may still run until it returns.
  virtual ~Trainer() = default;
  // Makes ready for an incarnation of a worker. The net of the incarnation before serves again if
  // the job is the same; weights of its own (elastic) begin anew at the master's. Ends in `done`
  // with the model's fingerprint. Errors: kConfig, kData, kNotFound, kFull.
  struct Incarnation {
    WorkerId worker;
    std::string contribution;  // the key that its results go to
    JobSpec job;
    std::shared_ptr<RecordStore> store;
    // The shared memory that the store has before it; null: none.
    std::shared_ptr<WorkerMemory> memory = nullptr;
    std::uint64_t term = 0;  // of the master that admitted it
    // Of the state that it goes on from; else its number and the job say it.
    std::optional<DataStart> start = std::nullopt;
  };
  virtual void prepare(Incarnation incarnation, std::function<void(Result<Digest>)> done) = 0;
  // One run of the prepared job. A loss that is not finite is reported like any other, but nothing
  // is contributed then. Errors: kData; those of the store; kUnavailable if nothing is prepared.
  virtual void run(TrainMessage order, std::function<void(Result<RunReport>)> done) = 0;
  // Puts what this worker has alone into the store, as state_key() of src/train/states names it.
  // Errors: kUnavailable if nothing is prepared; kNotFinite; those of the store.
  virtual void save_state(SaveStateMessage order, std::function<void(Result<void>)> done) = 0;
  // Makes all runs ordered so far end as soon as possible; their callbacks get kUnavailable.
  virtual void cancel() = 0;
  // The same of a run that nobody will hear of: what it has put into the store is erased, before
  // anything that is ordered later.
  virtual void withdraw() = 0;
  // Grows with every layer computed and every chunk moved. Never blocks.
  virtual std::uint64_t progress() const = 0;
};

std::unique_ptr<Trainer> make_trainer(TrainerParts parts);

}  // namespace speedo
