#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/solver.hpp>
#include <speedo/store/parameter_store.hpp>
#include <speedo/store/store_address.hpp>
#include <speedo/train/master_session.hpp>
#include <speedo/train/merger.hpp>
#include <speedo/train/trainer.hpp>
#include <speedo/train/training_id.hpp>
#include <speedo/train/worker_session.hpp>

namespace speedo {

// A master or a worker as a whole, without a word of CAF: what main() calls.

// Opens a job's store with what credentials the process has: masters and workers handle addresses.
using OpenStore = std::function<Result<std::shared_ptr<ParameterStore>>(const StoreAddress& address,
                                                                         const std::string& job)>;

struct MasterOptions {
  std::string bind = "127.0.0.1";   // address to listen on
  std::uint16_t port = 0;           // 0: any free one
  std::string host;                 // that workers are told; empty: bind, or what others reach
  StoreAddress store;               // that workers are told
  std::string job;                  // the job's key space in the store
  // Model, store, job and the name of a new training are filled in by run_master. A training that
  // is known is that of the initial_... below, and goes on.
  MasterConfig session;
  // The stages of session, merger and spec are the same ones: run_master copies session.stages.
  MergerConfig merger;
  JobSpec spec;
  // Weights to start from; empty: the net's fillers. Either may come from --snapshot/--weights.
  std::shared_ptr<caffe::NetParameter> initial_weights;
  std::shared_ptr<caffe::SolverState> initial_state;   // histories
  std::string initial_session;      // MasterSession::save() of a checkpoint file; empty: none
  // kStore: go on from the store, kNotFound if it has nothing. kNewest: from the store or, if they
  // are newer and of the same training or the store has nothing, from the initial_... above; from
  // the start if neither is there.
  enum class Resume { kNo, kStore, kNewest };
  Resume resume = Resume::kNo;
  // kStore: only weights and histories are taken, and counted from session.start_iteration.
  bool renumber = false;
  bool take_over = false;           // although another master's lease is not over
};

// What a snapshot is made of; the references live as long as the call.
struct SnapshotParts {
  std::int64_t iteration = 0;
  const caffe::NetParameter& model;
  caffe::SolverState& state;
  const std::string& session;       // MasterSession::save() as of this iteration
  Digest model_digest;
};

struct MasterHooks {
  // Once the nets are known, before anything is changed in the store; an error ends the master.
  std::function<Result<void>(std::int64_t weight_bytes)> admit;
  // Which training goes on, or begins anew; before anything of an earlier one is removed from the
  // store. An error ends the master.
  std::function<Result<void>(const TrainingId& training, bool is_new)> on_training;
  std::function<void(const std::string& address)> on_listening;   // "speedo://host:port"
  std::function<void(const MasterProgress&, const std::vector<TestScores>*)> on_progress;
  std::function<std::optional<std::string>()> poll_stop;  // a reason: stop cleanly
  // Whether such a stop is to write a snapshot even if the job does not end with one; empty: yes.
  std::function<bool()> stop_wants_snapshot;
  std::function<bool()> poll_snapshot;                    // true: write one and go on
  std::function<Result<void>(const SnapshotParts& parts)> snapshot;
};

// Runs until training is over or stopped. Blocking. Claims the job in the store first; while
// another master holds it, waits for the end of its lease, and fails if it is renewed. Errors:
// kUnavailable (also a port in use), kRefused, kConfig, kData, kNotFinite, kSuperseded (another
// master holds the job, or has taken it over), kNotFound (nothing to resume).
Result<MasterProgress> run_master(const MasterOptions& options, const MasterHooks& hooks,
                                  const TrainerParts& parts, const OpenStore& open_store);

struct WorkerOptions {
  std::string master;               // as parse_address takes it
  StoreAddress store_override;      // --redis at the worker: used instead of what the master says
  std::chrono::seconds store_timeout{0};  // a store that is away is waited for so long
  std::uint64_t count = 1;          // worker actors in this process
  std::string name_prefix;          // host/pid
  WorkerConfig session;             // name is filled in
};

struct WorkerHooks {
  std::function<std::optional<std::string>()> poll_stop;
};

Result<void> run_worker(const WorkerOptions& options, const WorkerHooks& hooks,
                        const TrainerParts& parts, const OpenStore& open_store);

// "host:port" of any of the accepted address forms. Error: kUsage, naming the forms.
struct Address {
  std::string host;
  std::uint16_t port = 0;
};
Result<Address> parse_address(const std::string& text);

}  // namespace speedo
