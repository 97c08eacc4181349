#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <speedo/base/digest.hpp>
#include <speedo/base/result.hpp>
#include <speedo/core/solver.hpp>
#include <speedo/store/store_address.hpp>
#include <speedo/train/master_session.hpp>
#include <speedo/train/merger.hpp>
#include <speedo/train/trainer.hpp>
#include <speedo/train/training_id.hpp>

#include "train/states/saved_states.hpp"

namespace speedo {

// What workers are told of a job beside its stages; see JobSpec.
struct JobTerms {
  std::string solver_text, base;
  bool offset_shards = false;
  std::uint64_t expected_workers = 1;
  bool deterministic = false;
  std::uint32_t step_parts = 1;  // filled in by MasterRun
};

// How a job's merger works, see MergerConfig.
struct MergerTuning {
  std::uint64_t publish_interval = MergerConfig{}.publish_interval;
  std::uint64_t ahead_bytes_min = MergerConfig{}.ahead_bytes_min;
  int threads = MergerConfig{}.threads;
  double clip_norm = 0.0, outlier_factor = 0.0;
  // In parts, one a server of the store; whoever offers to merge one may. Shares no memory.
  bool in_parts = false;
  bool part_copies = true;  // each part also on the server after its own
};

struct MasterOptions {
  std::string bind = "127.0.0.1";   // address to listen on
  std::uint16_t port = 0;           // 0: any free one
  std::string host;                 // that workers are told; empty: bind, or what others reach
  StoreAddress store;               // that workers are told
  std::string job;                  // the job's key space in the store
  // Model, store, job and the name of a new training are filled in by complete() and MasterRun. A
  // training that is known is that of the initial_... below, and goes on. Its stages are the job's.
  // Its device is this master's; it counts where gradients travel as factors.
  MasterConfig session;
  MergerTuning merger;
  JobTerms spec;
  // Weights to start from; empty: the net's fillers. Either may come from --snapshot/--weights.
  std::shared_ptr<caffe::NetParameter> initial_weights;
  std::shared_ptr<caffe::SolverState> initial_state;   // histories
  std::string initial_session;      // MasterSession::save() of a checkpoint file; empty: none
  SavedStates initial_states;       // of workers, of the same file
  // The files of those that a new training begins with; empty: none, or a checkpoint's. Why they
  // are not there, which is an error where they are needed.
  std::string given_start;
  std::optional<Error> start_fault;
  // kStore: go on from the store, kNotFound if it has nothing. kNewest: from the store or, if they
  // are newer and of the same training or the store has nothing, from the initial_... above; from
  // the start if neither is there. Those of a given_start are a start.
  enum class Resume { kNo, kStore, kNewest };
  Resume resume = Resume::kNo;
  // kStore: only weights and histories are taken, and counted from session.start_iteration.
  bool renumber = false;
  bool take_over = false;           // although another master's lease is not over
  StrategyFactory make_strategy = speedo::make_strategy;
};

// Whether weights are tested at any time, by the job's interval or a stage's own.
bool has_tests(const MasterConfig& config);

// Whether the weights lie in parts, each with its merger: of replicated updates only steps do.
bool has_weights_in_parts(const MasterOptions& options);

// The job as its workers get it, and as its merger works on it under the session's term.
JobSpec job_spec(const MasterOptions& options);
MergerConfig merger_config(const MasterOptions& options, Platform& platform);

// What a snapshot is made of; the references live as long as the call.
struct SnapshotParts {
  std::int64_t iteration = 0;
  const caffe::NetParameter& model;
  caffe::SolverState& state;
  const std::string& session;       // MasterSession::save() as of this iteration
  Digest model_digest;
  // Workers whose states go with it, in the order of their seats, and each of the states.
  std::vector<WorkerId> workers = {};
  std::function<Result<StateOfWorker>(WorkerId worker)> state_of = nullptr;
  // Without a session: the step of the data that training goes on with.
  std::optional<std::uint64_t> data_step = std::nullopt;
};

struct MasterHooks {
  // Once the nets are known, before anything is changed in the store; an error ends the master.
  std::function<Result<void>(std::int64_t weight_bytes)> admit;
  // Which training goes on, or begins anew, and at which iteration; before anything of an earlier
  // one is removed from the store. An error ends the master.
  std::function<Result<void>(const TrainingId& training, bool is_new, std::uint64_t iteration)>
      on_training;
  // Another master had the job, and this one waited for it: chooses again which files it goes on
  // from, as that one may have written newer ones and removed these. Empty: they stay.
  std::function<void(MasterOptions& options)> choose_files = {};
  std::function<void(const std::string& address)> on_listening;   // "speedo://host:port"
  std::function<void(const MasterProgress&, const std::vector<TestScores>*)> on_progress;
  // How the job stands, now and then and at its end; empty: nobody wants to know.
  std::function<void(JobStatus)> on_status = {};
  std::function<std::optional<std::string>()> poll_stop;  // a reason: stop cleanly
  // Whether such a stop is to write a snapshot even if the job does not end with one; empty: yes.
  std::function<bool()> stop_wants_snapshot;
  std::function<bool()> poll_snapshot;                    // true: write one and go on
  std::function<Result<void>(const SnapshotParts& parts)> snapshot;
  // What a test of an iteration's weights found; on the thread that writes snapshots.
  std::function<void(std::uint64_t iteration, const std::vector<TestScores>&)> on_tested = {};
};

}  // namespace speedo
